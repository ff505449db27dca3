#!/usr/bin/env bash
# Runs every executable script of a folder (tests/real by default) one after another and counts. A script passes with exit code 0, is
# skipped with 77 (its last line says why), and fails with any other, or after 25 minutes (LIMIT seconds). Scripts get the path of the binary as MW.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
dir=${1:-tests/real}
name=$(basename "$dir")

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

passed=0 failed=0 skipped=0
for script in "$dir"/*.sh; do
    [ -f "$script" ] && [ -x "$script" ] || continue
    start=$SECONDS
    timeout --kill-after=30 "${LIMIT:-1500}" "$script" >"$log" 2>&1 </dev/null
    case $? in
        0) passed=$((passed + 1)) word=PASS ;;
        77)
            # In CI nothing may be missing.
            if [ "${CI:-}" = true ]; then
                failed=$((failed + 1)) word=FAIL
            else
                skipped=$((skipped + 1)) word="SKIP ($(tail -n 1 "$log"))"
            fi
            ;;
        *) failed=$((failed + 1)) word=FAIL ;;
    esac
    echo "$script: $word [$((SECONDS - start))s]"
    [ "$word" != FAIL ] || sed 's/^/    /' "$log"
done
echo "$name: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
