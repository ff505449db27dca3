#!/usr/bin/env bash
# C11: SIGKILL in the middle of writes, 100 times: what was acknowledged is there and whole, and the store opens by itself. The recorder is
# outside (tests/real/kill9.py).
set -uo pipefail
cd "$(dirname "$0")" || exit 1
[ -e /dev/fuse ] || { echo "needs /dev/fuse"; exit 77; }
exec timeout 1500 python3 kill9.py "$MW" "${MW_KILLS:-100}"
