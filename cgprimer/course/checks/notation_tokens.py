"""Characters, LaTeX commands, function names and tokens of formulas in usual notation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from unicodedata import decomposition, normalize

from cgprimer.core.operations.primitive_registry import FUNCTIONS

MAX_LENGTH = 10_000  # characters of a text that is rewritten
MAX_DEPTH = 40  # nested parentheses, powers and functions

#: The name of a function in the language, keyed by other usual names.
FUNCTION_NAMES = {
    "ln": "log",
    "lg": "log10",
    "lb": "log2",
    "ld": "log2",
    "log_2": "log2",
    "log_10": "log10",
    "tg": "tan",
    "ctg": "cot",
    "cotg": "cot",
    "cotan": "cot",
    "cosec": "csc",
    "sh": "sinh",
    "ch": "cosh",
    "th": "tanh",
    "cth": "coth",
    "cosech": "csch",
    "sgn": "sign",
    "signum": "sign",
    "fabs": "abs",
    "logistic": "sigmoid",
    "σ": "sigmoid",
}
FUNCTION_NAMES |= {
    f"{prefix}{name}": f"a{name}"
    for name in (
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "sinh",
        "cosh",
        "tanh",
        "coth",
        "sech",
        "csch",
    )
    for prefix in ("arc", "ar", "arg")
}
CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("−–—‐‑﹣－", "-"),
        **dict.fromkeys("·×⋅∙•∗✕＊⋆", "*"),
        "＋": "+",
        **dict.fromkeys("÷∕⁄／", "/"),
        "（": "(",
        "）": ")",
        "∣": "|",
        "｜": "|",
        "＾": "^",
        **dict.fromkeys("\u2009\u200a\u2002\u2003\u202f\u2061\u2062\u2063\u200b", " "),
    }
)
SYMBOLS = {"π": "pi", "ℯ": "e", "𝑒": "e"}
_COMMANDS = {
    "cdot": "*",
    "times": "*",
    "ast": "*",
    "div": "/",
    "left": "",
    "right": "",
    "lvert": "|",
    "rvert": "|",
    "vert": "|",
    "displaystyle": "",
}
_INNER = r"\{([^{}]*)\}"
_TOKEN = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\*\*|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a formula in mathematical notation, with its position.

    Attributes:
        kind: ``number``, ``name``, ``superscript``, ``operator`` or ``end``.
        text: the token in the characters of the language.
        start: the offset of the token in the text.
        end: the offset after the token.
        spaced: whether white space precedes the token.
    """

    kind: str
    text: str
    start: int
    end: int
    spaced: bool


def find_function_name(name: str) -> str:
    """Return the name of a function in the expression language, or ``""`` if it is unknown.

    >>> find_function_name("arctan"), find_function_name("sin"), find_function_name("xa")
    ('atan', 'sin', '')
    """
    return FUNCTION_NAMES.get(name) or (name if FUNCTIONS[name] else "")


def find_single_letters(text: str) -> set[str]:
    """Return the names in a formula that consist of a single letter.

    >>> sorted(find_single_letters("2x² + ab*c"))
    ['c', 'x']
    """
    tokens = split_tokens(text.translate(CHARACTERS))
    return {token.text for token in tokens if token.kind == "name" and len(token.text) == 1}


def replace_latex(text: str) -> str:
    """Replace the LaTeX commands in a formula; turn braces into parentheses."""
    if "\\" not in text and "{" not in text:
        return text
    text = text[:MAX_LENGTH]
    text = re.sub(r"\\[,;:! ]", " ", text)
    for _ in range(MAX_DEPTH):  # from the inside out
        before = text
        text = re.sub(rf"\\[dt]?frac\s*{_INNER}\s*{_INNER}", r"((\1)/(\2))", text)
        text = re.sub(rf"\\sqrt\s*{_INNER}", r" sqrt(\1)", text)
        text = re.sub(rf"\\(?:mathrm|operatorname|text)\s*{_INNER}", r" \1 ", text)
        text = re.sub(rf"_{_INNER}", r"_\1", text)
        text = re.sub(rf"(?<!frac)(?<!sqrt)(?<!\}}){_INNER}", r"(\1)", text)
        if text == before:
            break
    return re.sub(r"\\([A-Za-z]+)", lambda m: f" {_COMMANDS.get(m[1], m[1])} ", text)


def split_tokens(text: str) -> list[Token]:
    """Split a formula into tokens, followed by a token of kind ``end``."""
    tokens: list[Token] = []
    index, spaced = 0, False
    while index < len(text):
        start = index
        if text[index].isspace():
            index, spaced = index + 1, True
            continue
        kind, token_text, index = _read_token(text, index)
        tokens.append(Token(kind, token_text, start, index, spaced))
        spaced = False
    return [*tokens, Token("end", "", len(text), len(text), spaced)]


def _read_token(text: str, start: int) -> tuple[str, str, int]:
    """Return the kind and the text of the token at an offset, and the offset of its end."""
    end = start
    if is_superscript(text[start]):
        while end < len(text) and is_superscript(text[end]):
            end += 1
        return "superscript", normalize("NFKC", text[start:end]).translate(CHARACTERS), end
    if decomposition(text[start]).startswith("<fraction>"):
        fraction = normalize("NFKC", text[start]).translate(CHARACTERS)
        return "number", f"({fraction})", start + 1
    if text[start].isidentifier():
        while end < len(text) and _is_in_name(text[end]):
            end += 1
        name = text[start:end]
        lowered = "".join(normalize("NFKC", c) if _is_subscript(c) else c for c in name)
        return "name", lowered, end
    match = _TOKEN.match(text, start)
    assert match
    kind = "number" if match[0][0] in "0123456789." and match[0] != "." else "operator"
    return kind, match[0], match.end()


def is_superscript(character: str) -> bool:
    """Return whether a character is a superscript, such as ``²``."""
    return decomposition(character).startswith("<super>")


def _is_subscript(character: str) -> bool:
    """Return whether a character is a subscript, such as ``₁``."""
    return decomposition(character).startswith("<sub>")


def _is_in_name(character: str) -> bool:
    """Return whether a character may occur in a name after the first character."""
    if is_superscript(character):
        return False
    return f"a{character}".isidentifier() or (_is_subscript(character) and character.isalnum())
