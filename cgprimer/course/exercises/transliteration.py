"""Transliteration of Latin, Cyrillic and Greek letters to ASCII, for file names.

Letters with accents are decomposed by `unicodedata`; the tables hold those that it cannot
decompose, and two alphabets. Sources: ICAO Doc 9303, part 3 (Latin); BGN/PCGN romanization of
Russian and Ukrainian, simplified; ELOT 743 (Greek).
"""

from __future__ import annotations

import unicodedata

_LATIN = {
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "ð": "d",
    "đ": "d",
    "þ": "th",
    "ł": "l",
    "ß": "ss",
    "ı": "i",
    "ħ": "h",
    "ŧ": "t",
    "ŋ": "n",
    "ə": "e",
    "ɛ": "e",
    "ɔ": "o",
    "ɓ": "b",
    "ɗ": "d",
    "ƙ": "k",
    "ƴ": "y",
    "ĸ": "k",
    "ſ": "s",
}
_CYRILLIC = {
    "а": "a",
    "б": "b",
    "в": "v",
    "г": "g",
    "ґ": "g",
    "д": "d",
    "е": "e",
    "ё": "yo",
    "є": "ye",
    "ж": "zh",
    "з": "z",
    "и": "i",
    "і": "i",
    "ї": "yi",
    "й": "y",
    "к": "k",
    "л": "l",
    "м": "m",
    "н": "n",
    "о": "o",
    "п": "p",
    "р": "r",
    "с": "s",
    "т": "t",
    "у": "u",
    "ў": "u",
    "ф": "f",
    "х": "kh",
    "ц": "ts",
    "ч": "ch",
    "ш": "sh",
    "щ": "shch",
    "ъ": "",
    "ы": "y",
    "ь": "",
    "э": "e",
    "ю": "yu",
    "я": "ya",
    "ђ": "dj",
    "ј": "j",
    "љ": "lj",
    "њ": "nj",
    "ћ": "c",
    "џ": "dz",
    "ѓ": "gj",
    "ќ": "kj",
    "ѕ": "dz",
    "ә": "a",
    "ғ": "g",
    "қ": "q",
    "ң": "n",
    "ө": "o",
    "ұ": "u",
    "ү": "u",
    "һ": "h",
}
_GREEK = {
    "α": "a",
    "β": "v",
    "γ": "g",
    "δ": "d",
    "ε": "e",
    "ζ": "z",
    "η": "i",
    "θ": "th",
    "ι": "i",
    "κ": "k",
    "λ": "l",
    "μ": "m",
    "ν": "n",
    "ξ": "x",
    "ο": "o",
    "π": "p",
    "ρ": "r",
    "σ": "s",
    "ς": "s",
    "τ": "t",
    "υ": "y",
    "φ": "f",
    "χ": "ch",
    "ψ": "ps",
    "ω": "o",
}
_LETTERS = _LATIN | _CYRILLIC | _GREEK


def transliterate(text: str) -> str:
    """Convert Latin, Cyrillic and Greek letters to lower-case ASCII letters.

    Other letters are unchanged.

    >>> transliterate("Søren Đorđe Œuvre"), transliterate("Щербаков"), transliterate("李")
    ('soren dorde oeuvre', 'shcherbakov', '李')
    """
    composed = unicodedata.normalize("NFC", text).lower()
    return "".join(_transliterate_letter(character) for character in composed)


def _transliterate_letter(character: str) -> str:
    """Transliterate one letter to ASCII, or return it unchanged if it is unknown."""
    if character in _LETTERS:
        return _LETTERS[character]
    base = unicodedata.normalize("NFD", character)[0]  # a Greek or Latin letter with accents
    return _LETTERS.get(base, character)
