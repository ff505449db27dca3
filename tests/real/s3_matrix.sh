#!/usr/bin/env bash
# Clients of the Tigris dialect and more of S3, unmodified, against a real server, bytes compared: the Tigris CLI and SDK, storagesdk,
# the AWS SDK for JavaScript, tigris-boto3-ext, the MinIO client for Python, restic. (boto3, aws, rclone and s3cmd: s3_clients.sh.)
#
# Usage: MW=path/to/mw [MW_VENV=path/to/venv] [MW_NPM=path/with/node_modules] s3_matrix.sh [PART...]
# Parts: cli node python restic. A client that is not installed is skipped and named; a client that fails ends the run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=server.inc
. "$here/server.inc"
npm=${MW_NPM:-}/node_modules
wanted() { [[ $# -gt 1 && " ${*:2} " != *" $1 "* ]] && return 1 || return 0; }
parts=("$@")
part() { wanted "$1" "${parts[@]}"; }

mkdir -p "$work/tree/dir with space/deep" "$work/tree/memory"
head -c 100 /dev/urandom >"$work/tree/small"
: >"$work/tree/empty"
head -c 12000000 /dev/urandom >"$work/tree/dir with space/deep/big+100%.bin"
echo '# Notes' >"$work/tree/memory/notes.md"
echo 'über' >"$work/tree/dir with space/ünïcode & <co>"

# The life of a run, as the guide of the Tigris CLI has it.
cli() {
    t() { node "$npm/@tigrisdata/cli/dist/cli.js" "$@"; }
    tj() { t "$@" --format json; }
    as_run() { AWS_ACCESS_KEY_ID=$id AWS_SECRET_ACCESS_KEY=$secret TIGRIS_STORAGE_ACCESS_KEY_ID=$id TIGRIS_STORAGE_SECRET_ACCESS_KEY=$secret "$@"; }
    echo "tigris: $(t --version)"
    step 'a bucket with snapshots'
    t buckets create agent-world --enable-snapshots
    [[ $(tj buckets list | jq -r '.items[].name') == agent-world ]]
    # `cp` ends with 0 even when nothing was copied, so it is the bytes that count.
    t cp -r "$work/tree/" t3://agent-world/workspace/
    version=$(tj snapshots take agent-world 'before the run' | jq -r .version)
    [[ $version =~ ^[0-9]{19}$ ]] || { echo "no version: $version"; exit 1; }
    tj snapshots list agent-world | grep -q 'before the run'

    step 'fork, key, assign'
    t buckets create run-7 --fork-of agent-world
    tj buckets list --forks-of agent-world | grep -q run-7
    tj access-keys create sandbox-7 >"$work/key"
    id=$(jq -r .id "$work/key") secret=$(jq -r .secret "$work/key")
    [[ -n $id && $id != null && -n $secret && $secret != null ]]
    fails as_run t ls t3://run-7
    t access-keys assign "$id" -b run-7 -r Editor
    tj access-keys get "$id" | grep -q run-7

    step 'in the sandbox: copy out, work, copy in, snapshot'
    as_run t cp -r t3://run-7/workspace/ "$work/inside/"
    diff -r "$work/tree" "$work/inside"
    echo 'learnt something' >>"$work/inside/memory/notes.md"
    echo 'made' >"$work/inside/made by the run"
    as_run t cp "$work/inside/memory/notes.md" t3://run-7/workspace/memory/notes.md
    as_run t cp "$work/inside/made by the run" 't3://run-7/workspace/made by the run'
    as_run t mv t3://run-7/workspace/small t3://run-7/workspace/moved -f
    as_run t rm t3://run-7/workspace/empty -f
    as_run t snapshots take run-7 done
    fails as_run t ls t3://agent-world
    grep -qi 'access denied' "$work/out"
    [[ $(as_run tj buckets list | jq -r '.items[].name') == run-7 ]]

    step 'promote by copy'
    t cp -r t3://run-7/workspace/memory/ t3://agent-world/workspace/memory/
    t cp t3://agent-world/workspace/memory/notes.md "$work/back" && same "$work/inside/memory/notes.md" "$work/back"

    step 'promote by merge'
    tj buckets merge run-7 --yes >"$work/out"
    t cp -r t3://agent-world/workspace/ "$work/after/"
    mv "$work/inside/small" "$work/inside/moved" && rm "$work/inside/empty"
    diff -r "$work/inside" "$work/after"
    step 'a merge that contradicts itself'
    echo base | t objects put agent-world workspace/both
    echo run | t objects put run-7 workspace/both
    fails t buckets merge run-7 --yes
    grep -qi 'conflict' "$work/out"
    t cp t3://agent-world/workspace/both "$work/back" && [[ $(cat "$work/back") == base ]]
    t rm t3://run-7/workspace/both -f
    step 'rebase'
    t buckets create run-8 --fork-of agent-world --source-snapshot "$version"
    tj buckets rebase run-8 --yes >"$work/out"

    step 'the world as it was'
    tj ls t3://agent-world/workspace/ --snapshot-version "$version" | grep -q empty
    # The client finds the version of the object itself, among all of them.
    curl -fsS "$(t presign t3://agent-world/workspace/small --snapshot-version "$version")" -o "$work/back"
    same "$work/tree/small" "$work/back"
    curl -fsS "$(t presign t3://agent-world/workspace/moved)" -o "$work/back" && same "$work/tree/small" "$work/back"
    curl -fsS -T "$work/tree/small" "$(t presign t3://agent-world/by-url --method put)"
    t objects get agent-world by-url --output "$work/back" && same "$work/tree/small" "$work/back"
    t bundle agent-world --keys "workspace/moved,workspace/made by the run" --output "$work/bundle.tar"
    tar -xOf "$work/bundle.tar" workspace/moved | cmp - "$work/tree/small"
    step 'stat and settings'
    tj stat | grep -qi buckets
    tj stat t3://agent-world >/dev/null
    tj buckets get run-8 | grep -q agent-world
    t buckets disable-snapshots run-8 && t buckets enable-snapshots run-8
    fails t buckets set run-8 --cache-control no-store
    grep -q cache_control "$work/out"

    step 'drop the fork, delete the key'
    t rm t3://run-7 -f
    t buckets delete run-8 --yes
    t access-keys delete "$id" --yes
    fails as_run t ls t3://agent-world
    fails t ls t3://run-7
    [[ $(tj buckets list | jq -r '.items[].name') == agent-world ]]
    t rm t3://agent-world -f
}

restic_part() {
    echo "restic: $(restic version | cut -d' ' -f2)"
    export RESTIC_REPOSITORY=s3:$endpoint/restic/repo RESTIC_PASSWORD=a-test RESTIC_CACHE_DIR=$work/restic-cache
    step init; restic -q init
    step backup; restic -q backup "$work/tree"
    echo more >>"$work/tree/small"
    restic -q backup "$work/tree"
    step check; restic -q check --read-data
    step restore; restic -q restore latest --target "$work/restored"
    diff -r "$work/tree" "$work/restored$work/tree"
    step 'forget and prune'; restic -q forget --keep-last 1 --prune
    restic -q check --read-data
    [[ $(restic snapshots --json | jq length) == 1 ]]
}

if part cli; then
    if [[ -e $npm/@tigrisdata/cli/dist/cli.js ]]; then cli; else lacks @tigrisdata/cli; fi
fi
if part node; then
    if [[ -d $npm/@tigrisdata/storage && -d $npm/@storagesdk/adapters && -d $npm/@aws-sdk/client-s3 ]]; then
        echo "node: $(node --version)"
        # Modules are looked for beside the script.
        cp "$here/s3_matrix.mjs" "$work/" && ln -s "$npm" "$work/node_modules"
        node "$work/s3_matrix.mjs"
    else
        lacks '@tigrisdata/storage @storagesdk/adapters @aws-sdk/client-s3'
    fi
fi
if part python; then
    if python3 -c 'import boto3, minio, tigris_boto3_ext' 2>/dev/null; then python3 "$here/s3_matrix.py"; else lacks 'tigris-boto3-ext minio'; fi
fi
if part restic; then
    if command -v restic >/dev/null; then restic_part; else lacks restic; fi
fi
ended
