#!/usr/bin/env bash
# Public suites against a real server: `s3s-e2e` (the AWS SDK for Rust) and the integration suite of `object_store`.
#
# Usage: MW_SUITES=1 scripts/deps.sh, then make conformance-s3. What is not installed (scripts/deps.sh) is skipped and named.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../real/server.inc
. "$here/../real/server.inc"
export AWS_ENDPOINT=$endpoint AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1

ran=0
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
