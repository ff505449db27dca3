#!/usr/bin/env bash
# Public suites against a real server: `s3s-e2e` (the AWS SDK for Rust) and the integration suite of the crate `object_store`.
#
# Usage: MW=path/to/mw [MW_TOOLS=path/to/tools] suites.sh
# scripts/deps.sh builds both. One that is not installed is skipped and named, or fails when CI is true.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
[[ -n ${MW_TOOLS:-} ]] && export PATH="$MW_TOOLS/bin:$PATH"
# shellcheck source=server.inc
. "$here/server.inc"
export AWS_ENDPOINT=$endpoint AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
have() { command -v "$1" >/dev/null || { lacks "$1"; return 1; }; }

if have s3s-e2e; then
    echo s3s-e2e
    # Its one case of STS wants a server that was set up with a role named `example`; roles here are those of a world.
    cases='^(Basic|Advanced/(Multipart|Tagging|ListPagination|PresignedUrl))'
    RUST_LOG=error s3s-e2e --filter "$cases" >"$work/e2e" 2>&1 || { tail -n 60 "$work/e2e"; exit 1; }
    tail -n 3 "$work/e2e"
fi

if have mw-suites; then
    echo object_store
    "$MW" world create suite
    mw-suites suite
fi

[[ ${#skipped[@]} -lt 2 ]] || { echo "needs s3s-e2e and mw-suites; scripts/deps.sh builds them"; exit 77; }
ended
