import unittest

from ledger import Money


class MoneyTest(unittest.TestCase):
    def test_parse(self):
        for text, cents in [("12.34", 1234), ("-0.05", -5), ("7", 700), ("7.5", 750)]:
            self.assertEqual(Money.parse(text).cents, cents)
        for text in ["", "x", "1.234", "1,5", "--1x"]:
            with self.assertRaises(ValueError):
                Money.parse(text)

    def test_print(self):
        self.assertEqual([str(Money(c)) for c in (0, 5, -5, 123456)], ["0.00", "0.05", "-0.05", "1234.56"])

    def test_split_loses_nothing(self):
        for cents in (100, 101, 1000, 1, -7):
            for parts in (1, 2, 3, 7):
                shares = Money(cents).split(parts)
                self.assertEqual(len(shares), parts)
                self.assertEqual(sum(s.cents for s in shares), cents, f"{cents} cents in {parts} parts")
                self.assertLessEqual(max(shares).cents - min(shares).cents, 1)


if __name__ == "__main__":
    unittest.main()
