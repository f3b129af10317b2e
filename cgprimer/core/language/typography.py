"""Corrections of typographic characters, such as ``×`` or ``²``, that word processors insert."""

from __future__ import annotations

from itertools import takewhile
from unicodedata import category, decomposition, normalize

ASCII_SPELLINGS = {
    "×": "*", "·": "*", "∙": "*", "⋅": "*", "÷": "/", "−": "-", "–": "-", "—": "-", "∗": "*",
    "ˆ": "^", "{": "(", "}": ")",
}  # fmt: skip
_QUOTES = "write names without quotation marks"
_ADVICE = {  # by character, or by Unicode category
    "√": "write sqrt(...)", "|": "write abs(...)", "<": "write less(a, b)", ">": "write less(b, a)",
    '"': _QUOTES, "'": _QUOTES, "„": _QUOTES, "‚": _QUOTES, "Pi": _QUOTES, "Pf": _QUOTES,
    ":": "a name is defined with '='", "%": "a comment begins with '#'",
    "\\": "LaTeX is not supported: write sin(a), a/b; parentheses join lines",
    ".": "a point belongs to a number: write sin(a) for np.sin(a), sum(a) for a.sum(), a @ b,"
    " transpose(a); cgprimer.load reads a file",
    "Cf": "remove this invisible character", "Mn": "type the letter again, with its accent",
}  # fmt: skip


def suggest_spelling(text: str) -> str:
    """Suggest how to write the invalid character or superscript that a string begins with.

    >>> suggest_spelling("⁻¹ + 1"), suggest_spelling("½"), suggest_spelling("÷2")
    ("write '^-1'", "write '(1/2)'", "write '/'")
    >>> suggest_spelling("√2"), suggest_spelling("$")
    ('write sqrt(...)', '')
    """
    odd = text[0]
    raised = "".join(takewhile(lambda letter: "<super>" in decomposition(letter), text))
    plain = normalize("NFKC", raised or odd).replace("−", "-").replace("⁄", "/")
    around = "^{}" if raised else "_{}" if "<sub>" in decomposition(odd) else "{}"
    around = "({})" if "/" in plain else around * (len(plain) == 1 or bool(raised))
    meant = ASCII_SPELLINGS.get(odd) or (
        around.format(plain) if plain != odd and plain.isascii() else ""
    )
    return f"write {meant!r}" if meant else _ADVICE.get(odd) or _ADVICE.get(category(odd), "")
