#!/usr/bin/env bash
# The MCP door with the official Python SDK, over standard input and output and over HTTP, and with raw JSON-RPC (tests/real/mcp_tools.py).
set -uo pipefail
python3 -c 'import mcp, botocore' 2>/dev/null || { echo "needs the Python packages mcp and boto3"; exit 77; }
exec timeout 600 python3 "$(dirname "$0")/mcp_tools.py" "$MW"
