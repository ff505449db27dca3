#!/usr/bin/env bash
# fsx with a million operations a seed, and many random system calls.
export SEEDS=20 OPERATIONS=1000000 CALL_SEEDS=100 CALLS=10000
exec "$(dirname "$0")/../real/posix.sh"
