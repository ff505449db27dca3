#!/usr/bin/env bash
# SIGKILL under load, 100 times; the recorder is outside (tests/real/kill9.py).
set -uo pipefail
cd "$(dirname "$0")" || exit 1
[ -e /dev/fuse ] || { echo "needs /dev/fuse"; exit 77; }
exec timeout 1500 python3 kill9.py "$MW" "${MW_KILLS:-100}"
