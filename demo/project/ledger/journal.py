"""The journal: one line an entry, `DATE ACCOUNT AMOUNT TEXT`; an empty line ends a transaction."""

from dataclasses import dataclass
from datetime import date

from .money import Money


class JournalError(ValueError):
    """A line that cannot be read, or a transaction that does not balance."""


@dataclass(frozen=True)
class Entry:
    """One line of a transaction."""

    day: date
    account: str
    amount: Money
    text: str = ""


def parse(lines):
    """Reads transactions; each must add up to nothing."""
    transactions, current = [], []
    for number, line in enumerate(lines, 1):
        line = line.split("#", 1)[0].strip()
        if not line:
            _close(current, transactions, number)
            current = []
            continue
        fields = line.split(None, 3)
        if len(fields) < 3:
            raise JournalError(f"line {number}: expected DATE ACCOUNT AMOUNT [TEXT]")
        try:
            entry = Entry(date.fromisoformat(fields[0]), fields[1], Money.parse(fields[2]), *fields[3:])
        except ValueError as error:
            raise JournalError(f"line {number}: {error}") from error
        current.append(entry)
    _close(current, transactions, "the end")
    return transactions


def _close(current, transactions, where):
    if not current:
        return
    total = sum((entry.amount for entry in current), Money())
    if total.cents:
        raise JournalError(f"before {where}: the transaction is off by {total}")
    transactions.append(tuple(current))
