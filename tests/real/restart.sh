#!/usr/bin/env bash
# Restarts the server in place while programs are in the middle of calls in its mounts and clients of every door ask: nobody notices (tests/real/restart.py).
set -uo pipefail
cd "$(dirname "$0")" || exit 1
[ -e /dev/fuse ] || { echo "needs /dev/fuse"; exit 77; }
[[ -n ${MW_VENV:-} ]] && export PATH="$MW_VENV/bin:$PATH"
exec timeout 900 python3 restart.py "$MW" "${MW_RESTARTS:-5}"
