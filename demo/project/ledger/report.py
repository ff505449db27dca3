"""Reports: what each account holds."""

from collections import defaultdict

from .money import Money


def balances(transactions):
    """Adds up every account."""
    totals = defaultdict(Money)
    for transaction in transactions:
        for entry in transaction:
            totals[entry.account] += entry.amount
    return dict(totals)


def render(transactions):
    """Prints one line an account, amounts to the right."""
    totals = balances(transactions)
    width = max(map(len, totals), default=0)
    return "\n".join(f"{account:<{width}}  {amount!s:>12}" for account, amount in sorted(totals.items()))
