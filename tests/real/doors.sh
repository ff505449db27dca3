#!/usr/bin/env bash
# What is written through one door is read through every other (tests/real/doors.py).
[ -e /dev/fuse ] || { echo "needs /dev/fuse"; exit 77; }
python3 -c 'import boto3' 2>/dev/null || { echo "needs boto3"; exit 77; }
exec timeout 300 python3 "$(dirname "$0")/doors.py" "$MW"
