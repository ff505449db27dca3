#!/usr/bin/env bash
# Runs every block of docs/use-it-with.md as it stands, each in an empty directory, with the variables that the page tells to set.
#
# A block says after its language what it needs. What is not installed is skipped and named; under CI=true what scripts/deps.sh installs must be
# there.
set -uo pipefail
: "${MW:?set MW to the mw binary}"
here=$(cd "$(dirname "$0")" && pwd)
[[ -n ${MW_VENV:-} ]] && export PATH=$MW_VENV/bin:$PATH
for name in $(compgen -e | grep -E '^(AWS|TIGRIS|RCLONE|RESTIC)_' || true); do unset "$name"; done

base=/dev/shm; [[ -d $base && -w $base ]] || base=${TMPDIR:-/tmp}
work=$(mktemp -d "$base/mw-snippets.XXXXXX")
server=
trap '[[ -z $server ]] || { kill "$server"; wait "$server"; } 2>/dev/null; rm -rf "$work"' EXIT
"$MW" serve --data "$work/data" --listen 127.0.0.1:0 >"$work/ready" 2>"$work/log" & server=$!
for _ in $(seq 400); do grep -q '^ready ' "$work/ready" && break; sleep 0.05; done
grep -q '^ready ' "$work/ready" || { echo "the server did not become ready:"; cat "$work/log"; exit 1; }
# What a client leaves in the home directory, and what it would tell or ask its makers.
export HOME=$work/home NODE_NO_WARNINGS=1 DO_NOT_TRACK=1 TIGRIS_NO_TELEMETRY=1 TIGRIS_NO_UPDATE_CHECK=1 NO_UPDATE_NOTIFIER=1
mkdir "$HOME"
skipped=()
lacks() {
    local package=${1//_/-}
    [[ $package != tigris ]] || package=@tigrisdata/cli
    if [[ ${CI:-} == true ]] && grep -qF -- "$package" "$here/../../scripts/deps.sh"; then
        echo "missing: $1"
        exit 1
    fi
    skipped+=("$1")
}
page=$here/../../docs/use-it-with.md
npm=${MW_NPM:-}/node_modules
mkdir "$work/bin" "$work/run"
ln -s "$(realpath "$MW")" "$work/bin/mw"
printf '#!/bin/sh\nexec node "%s/@tigrisdata/cli/dist/cli.js" "$@"\n' "$npm" >"$work/bin/tigris"
chmod +x "$work/bin/tigris"
export PATH=$work/bin:$PATH MW_DATA=$work/data RESTIC_CACHE_DIR=$work/restic
unset MW MW_ENDPOINT

has() {
    case $1 in
        /*) [[ -e $1 ]] ;;
        tigris) [[ -e $npm/@tigrisdata/cli/dist/cli.js ]] ;;
        @*) [[ -d $npm/$1 ]] ;;
        boto3 | minio | mcp | tigris_boto3_ext) python3 -c "import $1" 2>/dev/null ;;
        *) command -v "$1" >/dev/null ;;
    esac
}
# An MCP client's configuration: what it names is started, and must offer tools.
configured() {
    python3 - "$1" <<'P'
import asyncio, json, os, sys
from mcp import Client, StdioServerParameters

async def main():
    for name, server in json.load(open(sys.argv[1]))["mcpServers"].items():
        params = StdioServerParameters(command=server["command"], args=server["args"], env=dict(os.environ))
        async with Client(params) as client:
            assert len((await client.list_tools()).tools) > 10, name

asyncio.run(main())
P
}

ran=0 failed=0
block() { # language, needs, file
    local need dir
    for need in ${2//,/ }; do
        has "$need" || { lacks "$need"; return; }
    done
    dir=$work/run/$4.d
    mkdir "$dir"
    case $1 in
        sh) (cd "$dir" && bash -euo pipefail "$3") ;;
        python) (cd "$dir" && python3 "$3") ;;
        js) ln -sfn "$npm" "$work/run/node_modules" && cp "$3" "$work/run/$4.mjs" && (cd "$dir" && node "$work/run/$4.mjs") ;;
        json) configured "$3" ;;
        text) return ;;
        *) echo "a block of the language $1 is not known"; false ;;
    esac >"$work/out" 2>&1 </dev/null
    if [[ $? -ne 0 ]]; then
        failed=$((failed + 1))
        printf 'FAILED: the block at line %s (%s %s):\n' "$4" "$1" "$2"
        sed 's/^/    /' "$3" "$work/out"
        return
    fi
    ran=$((ran + 1))
    printf '  line %s: %s %s\n' "$4" "$1" "$2"
}

# What the page says under "Once" is done by its first block, in a shell of its own; here its variables are set for the others.
mw world list >/dev/null && eval "$(mw env)" || { echo "mw env failed"; exit 1; }
number=0 language= start=0
while IFS= read -r line; do
    number=$((number + 1))
    if [[ $language ]]; then
        if [[ $line == '```' ]]; then
            block "$language" "$needs" "$work/block" "$start"
            language=
        else
            printf '%s\n' "$line" >>"$work/block"
        fi
    elif [[ $line == '```'* ]]; then
        read -r language more <<<"${line#'```'}"
        needs=${more#needs=} start=$number
        : >"$work/block"
    fi
done <"$page"
[[ -z $language ]] || { echo "a block is not ended"; exit 1; }
echo "$ran blocks ran"
[[ $failed -eq 0 ]] || exit 1
[[ $ran -ge 5 ]] || { echo "too few blocks: was the page read?"; exit 1; }
[[ ${#skipped[@]} -eq 0 ]] || echo "skipped, not installed: ${skipped[*]}"
kill -0 "$server" || { echo "the server died:"; cat "$work/log"; exit 1; }
