#!/usr/bin/env bash
# Public suites against a real server: `s3s-e2e` (the AWS SDK for Rust) and the integration suite of `object_store`.
#
# Usage: MW_SUITES=1 scripts/deps.sh, then make conformance-s3. What is not installed (scripts/deps.sh) is skipped and named.
set -euo pipefail

: "${MW:?set MW to the mw binary}"
[[ -n ${MW_VENV:-} ]] && export PATH="$MW_VENV/bin:$PATH"

base=${TMPDIR:-/tmp}
[[ -d /dev/shm && -w /dev/shm ]] && base=/dev/shm
work=$(mktemp -d "$base/mw-suites.XXXXXX")
server=
finish() {
    [[ -n $server ]] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT

# `mw serve` says where it listens in one line: ready http://ADDR:PORT
mkfifo "$work/ready"
"$MW" serve --data "$work/data" --listen 127.0.0.1:0 >"$work/ready" 2>"$work/log" &
server=$!
exec 3<"$work/ready"
endpoint=
while read -r -t 60 line <&3; do
    if [[ $line == ready\ * ]]; then
        endpoint=${line#ready }
        break
    fi
done
[[ -n $endpoint ]] || { echo "the server did not become ready:"; cat "$work/log"; exit 1; }
cat <&3 >/dev/null &

field() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$work/data/root-key.json" "$1"; }
AWS_ACCESS_KEY_ID=$(field id)
AWS_SECRET_ACCESS_KEY=$(field secret)
export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
export AWS_ENDPOINT_URL=$endpoint AWS_ENDPOINT=$endpoint
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
export AWS_CONFIG_FILE=$work/aws-config AWS_SHARED_CREDENTIALS_FILE=$work/aws-credentials
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_CA_BUNDLE

ran=0 skipped=()
if command -v s3s-e2e >/dev/null; then
    echo s3s-e2e
    # Its one case of STS wants a server that was set up for its own account.
    RUST_LOG=error s3s-e2e --filter '^(Basic|Advanced/(Multipart|Tagging|ListPagination|PresignedUrl))' >"$work/e2e" 2>&1 || {
        tail -n 60 "$work/e2e"
        exit 1
    }
    tail -n 3 "$work/e2e"
    ran=$((ran + 1))
else
    skipped+=(s3s-e2e)
fi

if command -v mw-suites >/dev/null; then
    curl -sf --aws-sigv4 aws:amz:us-east-1:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" -X PUT "$endpoint/suite"
    mw-suites suite
    ran=$((ran + 1))
else
    skipped+=("object_store (mw-suites)")
fi

if ((${#skipped[@]})); then
    [[ ${CI:-} != true || -z ${MW_SUITES:-} ]] || { echo "not installed: ${skipped[*]}"; exit 1; }
    ((ran)) || { echo "not installed: ${skipped[*]}; MW_SUITES=1 scripts/deps.sh builds them"; exit 77; }
    echo "not installed, so not run: ${skipped[*]}"
fi
