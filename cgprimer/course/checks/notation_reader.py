"""Usual mathematical notation, as people write formulas by hand, in the package's language.

`read_formula` reads an answer. A text that follows the grammar of the language and whose names are
all known means what the grammar says. Any other text is rewritten first: ``2x``, ``x e^x``,
``sin^2(x)``, ``ln x``, ``√2``, ``x²``, ``|x|``, ``a·b`` and the commands of LaTeX for these. What
has two usual readings, such as ``1/2x``, is an error whose hint shows both.

A known name is never taken apart: ``xy`` is a product only if no ``xy`` is known, and if it
consists of known names in exactly one way.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import NoReturn
from unicodedata import decomposition, normalize

from cgprimer.core.operations.primitive_registry import FUNCTIONS
from cgprimer.errors import ExpressionSyntaxError, Source, SourceError, Span, UnknownFunctionError
from cgprimer.expressions import Expression, names_in, parse_expression

_MAX_LENGTH = 10_000  # characters of a text that is rewritten
_MAX_DEPTH = 40  # parentheses, powers and functions within each other
_MAX_NAME = 40  # characters of a name that is taken apart

#: Other names of functions.
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
_CHARACTERS = str.maketrans(
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
_SYMBOLS = {"π": "pi", "ℯ": "e", "𝑒": "e"}
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
class _Token:
    """A piece of the text: its kind, what it stands for, and its position."""

    kind: str  # number, name, superscript, operator, end
    text: str
    start: int
    end: int
    spaced: bool  # whether white space precedes it


def read_formula(
    text: str, names: Collection[str], source_name: str = "<answer>", *, variable: str = ""
) -> Expression:
    """Return the tree of a formula in the language or in usual notation.

    Args:
        text: the formula.
        names: the names that a product without a sign may consist of.
        source_name: what messages call the text.
        variable: the argument of functions that have none, as in ``-csch^2``; such functions
            are an error without it.

    Raises:
        SourceError: the text cannot be read or has two usual readings.

    >>> from cgprimer.core.operations.notation import unparse
    >>> unparse(read_formula("2x e^(-x) + sin^2 x", ["x", "e"]))
    '2*x*e^-x + sin(x)^2'
    """
    try:
        tree = parse_expression(text, source_name)
    except SourceError as error:
        refused: SourceError | None = error
    else:
        refused = None
        unknown = [name for name in names_in(tree) if name not in names]
        if not any(_is_usual(name, names) for name in unknown):
            return tree
    if len(text) > _MAX_LENGTH:
        if refused:
            raise refused
        return tree
    plain = rewrite(text, names, source_name, variable=variable)
    if refused and "".join(plain.split()) == "".join(
        text.split()
    ):  # the positions of the original are better
        raise refused
    try:
        return parse_expression(plain, source_name)
    except SourceError:
        if isinstance(refused, UnknownFunctionError):  # it names the function that is meant
            raise refused from None
        raise


def rewrite(
    text: str, names: Collection[str], source_name: str = "<answer>", *, variable: str = ""
) -> str:
    """Return a formula in usual notation as text in the language; see :func:`read_formula`.

    >>> rewrite("|x|√2 − ½x²", ["x"])
    'abs(x)*sqrt(2) - (1/2)*x^(2)'
    """
    source = Source(source_name, _without_latex(text).translate(_CHARACTERS))
    return _Rewriter(source, names, variable).whole()


def find_function_name(name: str) -> str:
    """Return the language's name of a function; empty if it is not the name of a function.

    >>> find_function_name("arctan"), find_function_name("sin"), find_function_name("xa")
    ('atan', 'sin', '')
    """
    return FUNCTION_NAMES.get(name) or (name if FUNCTIONS[name] else "")


def find_single_letters(text: str) -> set[str]:
    """Return the names of one letter that stand alone in a formula.

    >>> sorted(find_single_letters("2x² + ab*c"))
    ['c', 'x']
    """
    tokens = _tokens(text.translate(_CHARACTERS))
    return {token.text for token in tokens if token.kind == "name" and len(token.text) == 1}


def _is_usual(name: str, names: Collection[str]) -> bool:
    """Return whether an unknown name has a meaning in usual notation."""
    raised = any(map(_is_raised, name))
    return bool(
        raised or name in _SYMBOLS or find_function_name(name) or _segmentations(name, names)
    )


def _segmentations(name: str, names: Collection[str]) -> list[list[str]]:
    """Return at most two ways to divide a name into known names and functions."""
    if len(name) > _MAX_NAME:
        return []
    ways: list[list[list[str]]] = [[[]]]
    for end in range(1, len(name) + 1):
        ways.append(
            [
                [*before, name[start:end]]
                for start in range(end)
                if _is_piece(name[start:end], names)
                for before in ways[start]
                if before[-1:] != [name[start:end]]  # xx is a misspelled name, not x*x
            ][:2]
        )
    return ways[-1]


def _is_piece(text: str, names: Collection[str]) -> bool:
    known = text in names or text in _SYMBOLS or (text in ("e", "pi") and text in names)
    return known or (len(text) > 1 and bool(find_function_name(text)))


def _without_latex(text: str) -> str:
    """Return a text with the commands of LaTeX replaced; braces become parentheses."""
    if "\\" not in text and "{" not in text:
        return text
    text = text[:_MAX_LENGTH]
    text = re.sub(r"\\[,;:! ]", " ", text)
    for _ in range(_MAX_DEPTH):  # from the inside out
        before = text
        text = re.sub(rf"\\[dt]?frac\s*{_INNER}\s*{_INNER}", r"((\1)/(\2))", text)
        text = re.sub(rf"\\sqrt\s*{_INNER}", r" sqrt(\1)", text)
        text = re.sub(rf"\\(?:mathrm|operatorname|text)\s*{_INNER}", r" \1 ", text)
        text = re.sub(rf"_{_INNER}", r"_\1", text)
        text = re.sub(rf"(?<!frac)(?<!sqrt)(?<!\}}){_INNER}", r"(\1)", text)
        if text == before:
            break
    return re.sub(r"\\([A-Za-z]+)", lambda m: f" {_COMMANDS.get(m[1], m[1])} ", text)


class _Rewriter:
    """One pass over the tokens of a formula, by recursive descent of bounded depth."""

    def __init__(self, source: Source, names: Collection[str], variable: str, depth: int = 0):
        self.source, self.names, self.variable = source, names, variable
        self.tokens = _tokens(source.text)
        self.index, self.depth = 0, depth
        self.open_bar, self.seen_bar = False, False
        self.in_exponent = False

    # --- tokens --------------------------------------------------------------------------------

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    @property
    def previous(self) -> _Token:
        return self.tokens[self.index - 1]

    def accept(self, *texts: str) -> str:
        """Return the next token's text and advance if it is one of these operators."""
        token = self.token
        if token.kind == "operator" and token.text in texts:
            self.index += 1
            return token.text
        return ""

    def fail(self, message: str, first: int, last: int, *, hint: str = "") -> NoReturn:
        start, end = self.tokens[first].start, self.tokens[last].end
        raise ExpressionSyntaxError(
            message, Span(self.source, start, max(end, start + 1)), hint=hint
        )

    def ambiguous(self, first: int, last: int, hint: str) -> NoReturn:
        text = self.source.text[self.tokens[first].start : self.tokens[last].end]
        self.fail(f"{text!r} has two usual readings", first, last, hint=hint)

    def begins_operand(self) -> bool:
        token = self.token
        if token.kind in ("number", "name"):
            return True
        if token.text == "|" and token.kind == "operator":
            return not self.open_bar
        return token.kind == "operator" and token.text in ("(", "√")

    # --- the grammar, from loose to tight ------------------------------------------------------

    def whole(self) -> str:
        text = self.sum()
        if self.token.kind != "end":  # the parser of the language says what is wrong
            return text + self.source.text[self.previous.end :]
        return text

    def sum(self) -> str:
        parts = [self.term()]
        while sign := self.accept("+", "-"):
            parts.append(f" {sign} {self.term()}")
        return "".join(parts)

    def term(self) -> str:
        first = self.index
        text, divided = self.signed(), 0
        while True:
            if operator := self.accept("*", "/", "@"):
                divided = self.index if operator == "/" else 0
                text += operator + self.signed()
            elif self.begins_operand():
                self.check_product(first, divided)
                text += "*" + self.power()
            else:
                return text

    def check_product(self, first: int, divided: int) -> None:
        """Refuse a product without a sign that has no single usual reading."""
        text = self.source.text
        token = self.token
        if divided:
            upper = text[self.tokens[first].start : self.tokens[divided - 2].end]
            lower = text[self.tokens[divided].start : self.previous.end]
            hint = f"write ({upper}/{lower})*{token.text} or {upper}/({lower}*{token.text})"
            self.ambiguous(first, self.index, hint)
        if token.kind == "number":
            self.fail(
                f"missing operator between {self.previous.text!r} and {token.text!r}",
                self.index - 1,
                self.index,
                hint="write a product with *, a power with ^",
            )
        after_bar = self.previous.text == "|" and self.previous.kind == "operator"
        if token.text == "|" and self.seen_bar and not after_bar:
            self.ambiguous(first, self.index, "write abs(...) instead of |...|")

    def signed(self) -> str:
        signs = ""
        while sign := self.accept("+", "-"):
            signs += sign
        return signs.replace("+", "") + self.power()

    def power(self) -> str:
        first = self.index
        base = self.atom()
        return self.raised(base, first)

    def raised(self, base: str, first: int) -> str:
        """Return a base with the exponents that follow it."""
        if self.token.kind == "superscript":
            base += f"^({self.superscript()})"
            if self.token.text in ("^", "**") or self.token.kind == "superscript":
                self.ambiguous(first, self.index, "write the powers with parentheses")
            return base
        if not self.accept("^", "**"):
            return base
        start = self.index
        exponent = self.exponent()
        if (base == "e" or base[:1].isdigit()) and self.tokens[start].text != "(":
            self.check_exponent(base, exponent, first)
        return f"{base}^{exponent}"

    def exponent(self) -> str:
        """Return what stands behind ``^``: signs and one power."""
        signs = ""
        while sign := self.accept("+", "-"):
            signs += sign
        self.enter()
        before, self.in_exponent = self.in_exponent, True
        text = signs.replace("+", "") + self.power()
        self.in_exponent = before
        self.depth -= 1
        return text

    def check_exponent(self, base: str, exponent: str, first: int) -> None:
        """Refuse ``e^2x``: a product after the exponent of a number, without a space."""
        token = self.token
        if token.spaced or not self.begins_operand():
            return
        if token.text == "(" and not exponent.lstrip("-")[:1].isdigit():
            return
        hint = f"write {base}^({exponent}*...) or {base}^{exponent.strip()}*..."
        self.ambiguous(first, self.index, hint)

    def superscript(self) -> str:
        token = self.token
        self.index += 1
        source = Source(self.source.name, token.text)
        inner = _Rewriter(source, self.names, "", self.depth + 1)
        return inner.whole()

    # --- operands ------------------------------------------------------------------------------

    def atom(self) -> str:
        self.enter()
        text = self.operand()
        self.depth -= 1
        return text

    def enter(self) -> None:
        """Count a level of nesting, so that no text exhausts the stack."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail(
                f"more than {_MAX_DEPTH} parentheses and powers within each other",
                self.index,
                self.index,
                hint="write the formula with * between all factors",
            )

    def operand(self) -> str:
        token, at = self.token, self.index
        if token.kind == "number":
            self.index += 1
            self.check_mixed_number(at)
            return token.text
        if token.kind == "name":
            return self.name()
        if self.accept("("):
            return f"({self.inside(')')})"
        if self.accept("|"):
            self.seen_bar, before, self.open_bar = True, self.open_bar, True
            text = self.sum()
            if not self.accept("|"):
                self.fail("this | has no partner", at, at, hint="write abs(...)")
            self.open_bar = before
            return f"abs({text})"
        if self.accept("√"):
            return self.root(at)
        if token.kind == "superscript":
            self.fail("this exponent has no base", at, at)
        self.index += token.kind != "end"  # the parser of the language says what is wrong
        return token.text

    def check_mixed_number(self, at: int) -> None:
        """Refuse ``2½`` and ``½2``."""
        token, other = self.tokens[at], self.token
        if other.kind == "number" and not other.spaced and "(" in token.text + other.text:
            hint = "write 2.5 or 2*(1/2)"
            self.ambiguous(at, self.index, hint)

    def inside(self, close: str) -> str:
        """Return what stands up to a closing parenthesis, commas included."""
        bar, self.open_bar = self.open_bar, False
        exponent, self.in_exponent = self.in_exponent, False
        parts = [self.sum()]
        while self.accept(","):
            parts.append(self.sum())
        self.open_bar, self.in_exponent = bar, exponent
        if not self.accept(close) and self.token.kind != "end":
            self.fail(f"expected {close!r}, found {self.token.text!r}", self.index, self.index)
        if self.previous.text != close:
            self.fail(
                "this parenthesis is never closed",
                self.index - 1,
                self.index - 1,
                hint="add the missing ')'",
            )
        return ", ".join(parts)

    def root(self, at: int) -> str:
        if self.token.text == "(":
            return f"sqrt{self.atom()}"
        argument = self.atom()
        token = self.token
        joined = self.begins_operand() and not token.spaced and token.text != "√"
        if joined or token.kind == "superscript" or token.text in ("^", "**"):
            self.ambiguous(at, self.index, "write √(...) with parentheses")
        return f"sqrt({argument})"

    def name(self) -> str:
        """Return a name, a call, or the product of the names that it consists of."""
        token, at = self.token, self.index
        called = self.tokens[at + 1].text == "(" and self.tokens[at + 1].kind == "operator"
        function = find_function_name(token.text) or _other_case(token.text, called)
        if token.text in self.names:
            self.index += 1
            if called and function:
                hint = f"{token.text} is a name here: write {token.text}*(...) or {function}(...)"
                self.ambiguous(at, at + 1, hint)
            return token.text + self.places()
        if function:
            self.index += 1
            return self.application(function, at)
        if token.text in _SYMBOLS and _SYMBOLS[token.text] in (*self.names, "pi", "e"):
            self.index += 1
            return _SYMBOLS[token.text]
        ways = _segmentations(token.text, self.names)
        if not ways:
            self.index += 1
            return token.text + self.places()
        if len(ways) > 1:
            products = " or ".join("*".join(way) for way in ways)
            self.ambiguous(at, at, f"write {products}")
        if self.in_exponent:
            product = "*".join(ways[0])
            self.ambiguous(at - 1, at, f"write ^({product}) or ^{ways[0][0]}*...")
        self.tokens[at : at + 1] = _divided(token, ways[0])
        return self.name()

    def places(self) -> str:
        """Return the index of an array as it is written."""
        text = ""
        while self.token.text == "[" and self.token.kind == "operator":
            start = self.token.start
            while self.token.kind != "end" and not self.accept("]"):
                self.index += 1
            text += self.source.text[start : self.previous.end]
        return text

    def application(self, function: str, at: int) -> str:
        """Return the call of a function from the token behind its name on."""
        exponent = ""
        if self.token.kind == "superscript":
            exponent = self.superscript()
        elif self.accept("^", "**"):
            exponent = self.exponent()
        if re.fullmatch(r"\(?-.*", exponent):
            inverse = find_function_name(f"a{function}")
            hint = f"write 1/{function}(...)" + (f" or {inverse}(...)" if inverse else "")
            self.ambiguous(at, self.index - 1, hint)
        if self.token.text == "(" and self.token.kind == "operator":
            self.index += 1
            argument = self.inside(")")
        elif self.begins_operand() and not (self.variable and self.at_function()):
            argument = self.bare_argument(function, at)
        elif self.variable:
            argument = self.variable
        else:
            self.fail(f"{function} has no argument", at, at, hint=f"write {function}(x)")
        if not exponent:
            return f"{function}({argument})"
        if self.token.text in ("^", "**") or self.token.kind == "superscript":
            self.ambiguous(at, self.index, f"write ({function}(...)^{exponent})^...")
        return f"{function}({argument})^({exponent})"

    def bare_argument(self, function: str, at: int) -> str:
        """Return the argument of a function without parentheses: ``x``, ``2x``, ``x^2``."""
        hint = f"write the argument in parentheses: {function}(...)"
        if self.in_exponent:
            self.ambiguous(at, self.index, hint)
        numeric = self.token.kind == "number"
        text = self.power()
        while self.begins_operand() and not self.at_function():
            token = self.token
            if token.kind == "number" or token.text in ("(", "|") or (token.spaced and not numeric):
                self.ambiguous(at, self.index, hint)
            text += "*" + self.power()
        follows = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        tight = self.token.text in ("*", "/") and not self.token.spaced
        if tight and not (follows.kind == "name" and self.is_function(follows.text)):
            self.ambiguous(at, self.index, hint)
        return text

    def at_function(self) -> bool:
        return self.token.kind == "name" and self.is_function(self.token.text)

    def is_function(self, name: str) -> bool:
        return name not in self.names and bool(find_function_name(name))


def _other_case(name: str, called: bool) -> str:
    """Return the function that a call such as ``Sin(x)`` means; empty if there is none."""
    return find_function_name(name.lower()) if called and name != name.lower() else ""


def _divided(token: _Token, pieces: list[str]) -> list[_Token]:
    """Return a token for each piece of a name."""
    start, tokens = token.start, []
    for piece in pieces:
        spaced = token.spaced if start == token.start else False
        tokens.append(_Token("name", piece, start, start + len(piece), spaced))
        start += len(piece)
    return tokens


def _tokens(text: str) -> list[_Token]:
    """Return the tokens of a text, with one of kind ``end`` after the last."""
    tokens: list[_Token] = []
    index, spaced = 0, False
    while index < len(text):
        start = index
        if text[index].isspace():
            index, spaced = index + 1, True
            continue
        kind, shown, index = _token_at(text, index)
        tokens.append(_Token(kind, shown, start, index, spaced))
        spaced = False
    return [*tokens, _Token("end", "", len(text), len(text), spaced)]


def _token_at(text: str, start: int) -> tuple[str, str, int]:
    """Return the kind and the text of the token at an offset, and where it ends."""
    end = start
    if _is_raised(text[start]):
        while end < len(text) and _is_raised(text[end]):
            end += 1
        return "superscript", normalize("NFKC", text[start:end]).translate(_CHARACTERS), end
    if decomposition(text[start]).startswith("<fraction>"):
        fraction = normalize("NFKC", text[start]).translate(_CHARACTERS)
        return "number", f"({fraction})", start + 1
    if text[start].isidentifier():
        while end < len(text) and _is_in_name(text[end]):
            end += 1
        name = text[start:end]
        lowered = "".join(normalize("NFKC", c) if _is_lowered(c) else c for c in name)
        return "name", lowered, end
    match = _TOKEN.match(text, start)
    assert match
    kind = "number" if match[0][0] in "0123456789." and match[0] != "." else "operator"
    return kind, match[0], match.end()


def _is_raised(character: str) -> bool:
    return decomposition(character).startswith("<super>")


def _is_lowered(character: str) -> bool:
    return decomposition(character).startswith("<sub>")


def _is_in_name(character: str) -> bool:
    if _is_raised(character):
        return False
    return f"a{character}".isidentifier() or (_is_lowered(character) and character.isalnum())
