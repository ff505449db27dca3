#!/usr/bin/env bash
# SIGKILL while a mount is told of one change after another and programs wait in it: nothing hangs, and the mount is back (tests/real/mount_killed.py).
set -uo pipefail
cd "$(dirname "$0")" || exit 1
[ -e /dev/fuse ] || { echo "needs /dev/fuse"; exit 77; }
exec timeout 900 python3 mount_killed.py "$MW" "${MW_KILLS:-20}"
