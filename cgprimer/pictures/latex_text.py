r"""Text as LaTeX shows it as written, whatever is in it.

Source: the LaTeX Project, "LaTeX font encodings" (encguide).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\char36{}", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\^{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "-": r"\ensuremath{-}",
    '"': r"{\ttfamily\char34}",  # not every encoding has the straight ones
    "'": r"{\ttfamily\char39}", "`": r"{\ttfamily\char96}",
    "−": r"\ensuremath{-}", "×": r"\ensuremath{\times}", "÷": r"\ensuremath{\div}",
    "·": r"\ensuremath{\cdot}", "∂": r"\ensuremath{\partial}", "→": r"\ensuremath{\to}",
    "←": r"\ensuremath{\leftarrow}", "…": r"\ldots{}", "≈": r"\ensuremath{\approx}",
    "≤": r"\ensuremath{\le}", "≥": r"\ensuremath{\ge}", "≠": r"\ensuremath{\ne}",
    "±": r"\ensuremath{\pm}", "∞": r"\ensuremath{\infty}", "√": r"\ensuremath{\surd}",
    "∇": r"\ensuremath{\nabla}", "∑": r"\ensuremath{\Sigma}", "∏": r"\ensuremath{\Pi}",
    "²": r"\ensuremath{^2}", "³": r"\ensuremath{^3}", "°": r"\ensuremath{^\circ}",
    "–": "{--}", "—": "{---}", "‘": "{`}", "’": "{'}", "“": "{``}", "”": "{''}", "„": "{,,}",
    "ς": r"\ensuremath{\varsigma}", "ϑ": r"\ensuremath{\vartheta}", "ϕ": r"\ensuremath{\phi}",
    "φ": r"\ensuremath{\varphi}", "ϵ": r"\ensuremath{\epsilon}", "ε": r"\ensuremath{\varepsilon}",
    "ϖ": r"\ensuremath{\varpi}", "ϱ": r"\ensuremath{\varrho}", "ο": "o", "µ": r"\ensuremath{\mu}",
    "\N{NO-BREAK SPACE}": "~",
}  # fmt: skip
_SMALL = {
    "alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "iota", "kappa", "lamda", "mu",
    "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "chi", "psi", "omega",
}  # fmt: skip
_CAPITAL = {
    "gamma", "delta", "theta", "lamda", "xi", "pi", "sigma", "upsilon", "phi", "psi", "omega",
}  # fmt: skip
_LIKE_LATIN = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧ", "ABEZHIKMNOPTX", strict=True))
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip
_LETTERS = {
    "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}",
    "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}",
}  # fmt: skip


def escaped(text: str) -> str:
    r"""Text as LaTeX shows it as written; Greek letters through mathematics mode.

    >>> print(escaped("x_1^2 & α, größe"))
    x\_1\^{}2 \& \ensuremath{\alpha}, gr\"{o}\ss{}e
    """
    whole = "".join(map(_character, unicodedata.normalize("NFC", text)))
    return whole.replace(",,", ",{},")


def prose(text: str) -> str:
    r"""The same for sentences, in which a hyphen between letters is no minus.

    >>> print(prose("step-by-step: a - 1"))
    step-by-step: a \ensuremath{-} 1
    """
    parts = re.split(r"(?<=[^\W\d_])-(?=[^\W\d_])", text)
    return "-".join(map(escaped, parts))


def fallbacks(text: str) -> Iterable[str]:
    r"""Declarations for the characters that pdflatex has no letter for: it shows their numbers.

    LuaLaTeX and XeLaTeX take such characters from their font.

    >>> list(fallbacks("变"))[1]
    '  \\DeclareUnicodeCharacter{53D8}{\\textsuperscript{U+53D8}}'
    """
    strange = sorted({ord(character) for character in text if not character.isascii()})
    if not strange:
        return ()
    declared = (
        rf"  \DeclareUnicodeCharacter{{{number:04X}}}{{\textsuperscript{{U+{number:04X}}}}}"
        for number in strange
    )
    return (r"\ifPDFTeX", *declared, r"\fi")


def _character(character: str) -> str:
    known = _ESCAPES.get(character) or _LETTERS.get(character) or _LIKE_LATIN.get(character)
    if known or character.isascii():
        return known or (character if character.isprintable() else " ")
    words = unicodedata.name(character, "").lower().split()
    for size, names in (("small", _SMALL), ("capital", _CAPITAL)):
        if words[:3] == ["greek", size, "letter"] and len(words) == 4 and words[3] in names:
            name = words[3].replace("lamda", "lambda")
            return rf"\ensuremath{{\{name if size == 'small' else name.capitalize()}}}"
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[1] in _ACCENTS:
        letter = {"i": r"\i", "j": r"\j"}.get(parts[0], parts[0])
        return rf"\{_ACCENTS[parts[1]]}{{{letter}}}"
    return character
