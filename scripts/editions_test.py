"""Formulas of notebooks as MathML."""

import unittest

from editions import FORMULA, mathml


class Formulas(unittest.TestCase):
    def test_only_formulas_change(self):
        text = FORMULA.sub(mathml, "`$x$` costs, in $Q_{k}$, and\n$$[\\hat\\pi]^\\star(a)$$")
        self.assertTrue(text.startswith("`$x$` costs, in <math"))
        self.assertEqual(text.count("</math>"), 2)
        self.assertEqual(text.count('display="block"'), 1)
        for character in "$\\_*[":  # which Markdown would read
            self.assertNotIn(character, text.partition("costs")[2])


if __name__ == "__main__":
    unittest.main()
