#!/bin/sh
# Agent 1: runs the tests, reads which one fails, repairs the cause, and runs them again.
set -u
export PYTHONDONTWRITEBYTECODE=1
echo "fixer: on fork $FORK, attempt $MW_ATTEMPT"
python3 -m unittest -q 2>/tmp/report && { echo "fixer: nothing to do"; exit 0; }
failing=$(sed -n 's/^FAIL: \([a-z_]*\).*/\1/p' /tmp/report | sort -u)
echo "fixer: failing test: $failing"
python3 - <<'P'
import pathlib
source = pathlib.Path("ledger/money.py")
text = source.read_text()
old = "        share = self.cents // parts\n        return [Money(share) for _ in range(parts)]\n"
new = "        share, rest = divmod(self.cents, parts)\n        return [Money(share + (i < rest)) for i in range(parts)]\n"
assert old in text, "the fault is not where it was expected"
source.write_text(text.replace(old, new))
P
echo '{"agent":"fixer","learned":"Money.split dropped the remainder"}' >> /world/memory.jsonl
python3 -m unittest -q
