r"""Strings escaped for LaTeX documents.

Every character that a user can write is typeset as written: special characters of TeX, Greek
letters, accents, and placeholders for characters that pdflatex has no glyph for.

Source: the LaTeX Project, "LaTeX font encodings" (encguide).
"""

from __future__ import annotations

import re
import unicodedata

_REPLACEMENTS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\char36{}", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\^{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "\N{NO-BREAK SPACE}": "~", "…": r"\ldots{}",
    '"': r"{\ttfamily\char34}",  # not every encoding has straight quotes
    "'": r"{\ttfamily\char39}", "`": r"{\ttfamily\char96}",
    "–": "{--}", "—": "{---}", "‘": "{`}", "’": "{'}", "“": "{``}", "”": "{''}", "„": "{,,}",
    "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}",
    "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}", "ο": "o",
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧ", "ABEZHIKMNOPTX", strict=True)),
}  # fmt: skip
_MATHEMATICS = {
    "-": "-", "−": "-", "×": r"\times", "÷": r"\div", "·": r"\cdot", "∂": r"\partial", "→": r"\to",
    "←": r"\leftarrow", "≈": r"\approx", "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "±": r"\pm",
    "∞": r"\infty", "√": r"\surd", "∇": r"\nabla", "∑": r"\Sigma", "∏": r"\Pi", "²": "^2",
    "³": "^3", "°": r"^\circ", "ς": r"\varsigma", "ϑ": r"\vartheta", "ϕ": r"\phi", "φ": r"\varphi",
    "ϵ": r"\epsilon", "ε": r"\varepsilon", "ϖ": r"\varpi", "ϱ": r"\varrho", "µ": r"\mu",
}  # fmt: skip
_REPLACEMENTS |= {sign: rf"\ensuremath{{{command}}}" for sign, command in _MATHEMATICS.items()}
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip


def escape_latex(text: str) -> str:
    r"""Escape a string so that LaTeX typesets it as written; a hyphen becomes a minus sign.

    >>> print(escape_latex("x_1^2 & α, größe"))
    x\_1\^{}2 \& \ensuremath{\alpha}, gr\"{o}\ss{}e
    """
    escaped = "".join(map(_escape_character, unicodedata.normalize("NFC", text)))
    return escaped.replace(",,", ",{},")  # two commas are a ligature


def escape_latex_prose(text: str) -> str:
    r"""Escape a sentence for LaTeX; a hyphen between two letters stays a hyphen.

    >>> print(escape_latex_prose("step-by-step: a - 1"))
    step-by-step: a \ensuremath{-} 1
    """
    parts = re.split(r"(?<=[^\W\d_])-(?=[^\W\d_])", text)
    return "-".join(map(escape_latex, parts))


def declare_missing_characters(text: str) -> list[str]:
    r"""Return LaTeX lines that make pdflatex print the code points of characters it cannot typeset.

    LuaLaTeX and XeLaTeX take these characters from their font.

    >>> declare_missing_characters("变")[1]
    '  \\DeclareUnicodeCharacter{53D8}{\\textsuperscript{U+53D8}}'
    """
    code_points = sorted({ord(character) for character in text if not character.isascii()})
    if not code_points:
        return []
    declaration = r"  \DeclareUnicodeCharacter{{{0:04X}}}{{\textsuperscript{{U+{0:04X}}}}}"
    return [r"\ifPDFTeX", *map(declaration.format, code_points), r"\fi"]


def _escape_character(character: str) -> str:
    replacement = _REPLACEMENTS.get(character)
    if replacement or character.isascii():
        return replacement or (character if character.isprintable() else " ")
    if re.fullmatch("[Α-ΡΣ-Ωα-ω]", character):
        name = unicodedata.name(character).split()[-1].lower().replace("lamda", "lambda")
        return rf"\ensuremath{{\{name if character >= 'α' else name.capitalize()}}}"
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[1] in _ACCENTS:
        letter = {"i": r"\i", "j": r"\j"}.get(parts[0], parts[0])
        return rf"\{_ACCENTS[parts[1]]}{{{letter}}}"
    return character
