"""What people write elsewhere, and what to write here."""

# What other languages call our functions.
KNOWN_AS = {
    "ln": "log(a)", "lg": "log10(a)", "pow": "a^b", "power": "a^b", "if": "where(a, b, c)",
    "arcsin": "asin(a)", "arccos": "acos(a)", "arctan": "atan(a)", "tg": "tan(a)", "ctg": "cot(a)",
    "sgn": "sign(a)", "logistic": "sigmoid(a)", "square": "a^2", "clip": "clamp(a, b, c)",
    "arsinh": "asinh(a)", "arcosh": "acosh(a)", "artanh": "atanh(a)", "fabs": "abs(a)",
}  # fmt: skip

# Characters that word processors and other languages put in the place of ours.
MEANT = {
    "×": "*", "·": "*", "∙": "*", "⋅": "*", "÷": "/", "−": "-", "–": "-", "—": "-", "∗": "*",
    "²": "^2", "³": "^3", "[": "(", "]": ")", "{": "(", "}": ")", "（": "(", "）": ")",
}  # fmt: skip
ADVICE = {
    "√": "write sqrt(...)", "|": "write abs(...)", "<": "write less(a, b)", ">": "write less(b, a)",
    '"': "names stand without quotation marks", "'": "names stand without quotation marks",
    ":": "a name is defined with '='", "\\": "a division is written /",
    ".": "a decimal point stands in a number, as in 0.5; to read a file use cgprimer.load",
}  # fmt: skip

SEPARATOR = "statements are separated by a new line or ';'"
DECIMAL_MARK = "the decimal mark is a point: 3.5"
PLAIN_NUMBER = "a declared value is a plain number, such as 0.5"
