"""A small double-entry ledger."""

from .journal import Entry, JournalError, parse
from .money import Money
from .report import balances, render

__all__ = ["Entry", "JournalError", "Money", "balances", "parse", "render"]
