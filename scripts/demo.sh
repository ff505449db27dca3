#!/usr/bin/env bash
# The main job, shown: a source tree becomes a world, three agents race on forks of it, the winner is promoted.
#
# Everything happens in one folder of its own, which a later run of this script clears away, even after a kill -9.
set -euo pipefail
cd "$(dirname "$0")/.."

MW=${MW:?the path of the mw binary; run this through \`make demo\`}
DEMO=${MW_DEMO_DIR:-${TMPDIR:-/tmp}/manyworlds-demo-$(id -u)}
export MW_DATA=$DEMO/data
unset MW_ENDPOINT

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
show() { printf '\033[2m$ %s\033[0m\n' "${*//"$MW"/mw}"; "$@"; }
now() { date +%s%N; }
took() { printf '   (%d ms)\n' $((($(now) - $1) / 1000000)); }

clear_away() {
    # Only what this demo started: the server that its own folder names, and mounts below that folder.
    if [[ -f $MW_DATA/server.json ]]; then
        local pid
        pid=$(sed -n 's/.*"pid": *"\{0,1\}\([0-9]*\).*/\1/p' "$MW_DATA/server.json" | head -1)
        if [[ -n $pid && -r /proc/$pid/cmdline ]] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "mw.*$MW_DATA"; then
            kill "$pid" 2>/dev/null || true
            for _ in $(seq 100); do [[ -d /proc/$pid ]] || break; sleep 0.1; done
            [[ -d /proc/$pid ]] && kill -9 "$pid" 2>/dev/null
        fi
    fi
    { grep -F " $DEMO/" /proc/self/mounts || true; } | while read -r _ dir _; do
        umount -l "$dir" 2>/dev/null || fusermount3 -uz "$dir" 2>/dev/null || true
    done
    rm -rf "$DEMO"
}
trap 'status=$?; clear_away; exit $status' EXIT
trap 'exit 130' INT TERM
clear_away
mkdir -p "$DEMO"

say "1. A store: one binary, one folder, started by the first command that needs it"
start=$(now)
show "$MW" world create shop
took "$start"

say "2. A real source tree, with a failing test, becomes the world's workspace"
start=$(now)
show "$MW" put demo/project mw://shop/workspace
show "$MW" put demo/agents mw://shop/agents
took "$start"
show "$MW" ls -R mw://shop/workspace

say "3. The test fails on the base"
if show "$MW" run shop --keep -- python3 -m unittest -q; then
    echo "the test was expected to fail"; exit 1
fi

say "4. Three agents race, each on a fork of its own, with a key of its own, in a sandbox of its own"
echo "   one repairs the fault; one guesses; one is hostile. The validator runs the tests in a second sandbox."
start=$(now)
show "$MW" run shop --validate 'cd /workspace && python3 -m unittest -q' \
    --cmd 'sh /world/agents/fixer.sh' \
    --cmd 'sh /world/agents/loser.sh' \
    --cmd 'python3 /world/agents/hostile.py shop'
took "$start"

say "5. What the promote changed in the base, against the snapshot it took first"
before=$("$MW" snapshot list shop --json | python3 -c 'import json,sys; d=json.load(sys.stdin); s=d.get("snapshots", d); print(s[-1]["version"])')
show "$MW" diff "shop@$before" shop --stat
echo "\$ mw diff shop@$before shop --patch   (the source alone)"
"$MW" diff "shop@$before" shop --patch | sed -n '/^--- a\/workspace/,$p'

say "6. Who did what"
show "$MW" log shop --limit 8
show "$MW" log shop workspace/ledger/money.py

say "7. The test, run afresh on the base"
show "$MW" run shop -- sh -c 'cd /workspace && python3 -m unittest -q && echo "the tests pass"'

say "8. The base through S3, with an unmodified client"
eval "$("$MW" env)"
echo '$ curl --aws-sigv4 aws:amz:auto:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" $AWS_ENDPOINT_URL_S3/shop/workspace/ledger/money.py'
curl -sS --fail --aws-sigv4 "aws:amz:auto:s3" --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \
    -H "x-amz-content-sha256: UNSIGNED-PAYLOAD" "$AWS_ENDPOINT_URL_S3/shop/workspace/ledger/money.py" | sed -n '/def split/,/return/p'
unset MW_ENDPOINT

say "9. Times"
for i in 1 2 3; do
    start=$(now); "$MW" fork shop "timed-$i" >/dev/null; printf '   fork of the world:   '; took "$start"
    start=$(now); "$MW" discard "timed-$i" >/dev/null; printf '   the fork discarded:  '; took "$start"
done
show "$MW" fsck
say "Done: the fault is repaired in the base; the hostile agent reached nothing; every key of the run is dead."
