#!/bin/sh
# Agent 2: guesses, deletes the failing test's assertion by mistake in the code instead, and does not notice.
export PYTHONDONTWRITEBYTECODE=1
echo "loser: on fork $FORK, attempt $MW_ATTEMPT"
sed -i 's|share = self.cents // parts|share = round(self.cents / parts)|' ledger/money.py
rm -f README.md
python3 -m unittest -q
