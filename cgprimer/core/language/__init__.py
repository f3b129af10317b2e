"""The language of expressions: text to syntax tree with positions, and back to text."""
