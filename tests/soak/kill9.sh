#!/usr/bin/env bash
# SIGKILL under load, 1,000 times.
exec python3 "$(dirname "$0")/../real/kill9.py" "$MW" 1000
