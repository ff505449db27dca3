import unittest
from pathlib import Path

from ledger import JournalError, Money, balances, parse, render

SAMPLE = Path(__file__).parent / "sample.journal"


class JournalTest(unittest.TestCase):
    def test_sample(self):
        transactions = parse(SAMPLE.read_text().splitlines())
        self.assertEqual(len(transactions), 3)
        self.assertEqual(balances(transactions)["bank"], Money(87650))
        self.assertIn("food", render(transactions))

    def test_unbalanced(self):
        with self.assertRaisesRegex(JournalError, "off by 1.00"):
            parse(["2026-01-02 bank 2.00", "2026-01-02 food -1.00"])

    def test_bad_line(self):
        with self.assertRaisesRegex(JournalError, "line 1"):
            parse(["yesterday bank 2.00"])


if __name__ == "__main__":
    unittest.main()
