"""The exceptions of the package, and error messages with a caret under the source.

All exceptions derive from :class:`CgprimerError`, so ``except cgprimer.CgprimerError`` catches
every error that a user of the package can cause. ``exit_code`` is the exit code of the command
line: 2 for wrong use or unreadable input, 1 for a job that failed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

_FEW = 8  # names that a hint may list
# Control characters are shown as one visible character each, so that carets stay aligned.
VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
VISIBLE |= dict.fromkeys([*range(0x7F, 0xA0), 0x200E, 0x200F], 0xB7)
VISIBLE |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xB7)


@dataclass(frozen=True)
class Source:
    """A source text, with the name that error messages show, such as a file name.

    >>> Source("a.cg", "xa = 1\\nxb = 2").position(9)
    (2, 3)
    """

    name: str
    text: str

    def position(self, offset: int) -> tuple[int, int]:
        """Convert a character offset to a line and a column, both counted from 1."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - self.text.rfind("\n", 0, offset)

    def line(self, number: int) -> str:
        """Return a line of the source text, counted from 1, without its line break."""
        return self.text.split("\n")[number - 1].rstrip("\r")


@dataclass(frozen=True)
class Span:
    """A range of characters of a source text, from ``start`` to ``end`` (exclusive)."""

    source: Source
    start: int
    end: int

    def location(self) -> str:
        """Return the location as ``file:line:column``, as compilers print it."""
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def caret_lines(self, width: int = 96) -> str:
        """Return the source line, cut to ``width`` characters, and a line of carets below it."""
        number, column = self.source.position(self.start)
        text = self.source.line(number)
        length = max(1, min(self.end - self.start, len(text) - column + 1))
        first = max(0, column - 1 - width // 2)
        shown, left = text[first : first + width], "... " if first else ""
        right = " ..." if first + width < len(text) else ""
        # Tabs stay tabs in the line of carets, so that both lines are aligned.
        pad = "".join(c if c == "\t" else " " for c in shown[: column - 1 - first])
        carets = "^" * max(1, min(length, width - (column - 1 - first)))
        return f"  {left}{shown}{right}\n  {' ' * len(left)}{pad}{carets}"


class CgprimerError(Exception):
    """The base class of all exceptions of the package."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint

    def __reduce__(self) -> tuple[object, ...]:  # unpickle without calling __init__
        return Exception.__new__, (type(self), *self.args), vars(self)

    def __str__(self) -> str:
        text = f"{self.message}\n  hint: {self.hint}" if self.hint else self.message
        return text.translate(VISIBLE)


class UsageError(CgprimerError):
    """An invalid argument: an unknown name, a wrong type or an unsupported option."""

    exit_code = 2


class MissingValueError(UsageError):
    """A required input or parameter has no value."""


class ShapeError(UsageError):
    """Incompatible shapes; the message states the shapes, and the hint suggests a correction."""


class SourceError(CgprimerError):
    """An error at a position in the source text of a graph.

    ``line`` and ``column`` are counted from 1. ``str`` returns ``file:line:column: message``, the
    source line, a caret and the hint.
    """

    exit_code = 2

    def __init__(
        self, message: str, span: Span, *, hint: str = "", related: Iterable[tuple[str, Span]] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.span, self.related = span, tuple(related)
        self.line, self.column = span.source.position(span.start)

    def __str__(self) -> str:
        messages = [(self.message, self.span), *self.related]
        parts = [f"{span.location()}: {text}\n{span.caret_lines()}" for text, span in messages]
        parts += [f"  hint: {self.hint}"] if self.hint else []
        return "\n".join(parts).translate(VISIBLE)


class ExpressionSyntaxError(SourceError):
    """A source text that does not follow the grammar of the language."""


class UnknownFunctionError(SourceError):
    """A call to an unknown function, or with a wrong number of arguments."""


class TextShapeError(SourceError, ShapeError):
    """Incompatible shapes in a source text; a caret marks the operation."""


class DefinitionError(SourceError):
    """A name that is defined or declared twice, or an invalid declaration."""


class CycleError(SourceError):
    """A cyclic definition: variables that depend on each other."""

    def __init__(self, message: str, span: Span, *, path: tuple[str, ...], hint: str = "") -> None:
        super().__init__(message, span, hint=hint)
        self.path = path


class TapeError(CgprimerError):
    """An invalid tape (see :mod:`cgprimer.core.tape.verifier`), caused by a bug in its builder."""


class DifferentiationError(CgprimerError):
    """A tape that the chosen method cannot differentiate."""


class ExpressionSwellError(DifferentiationError):
    """An expression that exceeds the size limit of symbolic differentiation."""


class PathLimitError(DifferentiationError):
    """A graph with more paths than the path-sum method accepts."""


class EngineError(CgprimerError):
    """An engine that is not available on this machine, or does not support a program."""


class DataError(CgprimerError):
    """An invalid dataset or data file."""

    exit_code = 2


class TrainingError(CgprimerError):
    """Training that cannot continue; ``run`` is the training run up to the error, or None."""

    run: object = None


class NonFiniteError(TrainingError):
    """An infinite or nan value during training; the message names the vertex and the sample.

    ``why`` is a :class:`cgprimer.Why`: the operation, its operands and position, and a remedy.
    """

    why: object = None

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.why}" if self.why else super().__str__()


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return the hint ``did you mean 'tanh'?`` with the most similar names, or an empty string.

    >>> did_you_mean("sigmod", ["sin", "sigmoid", "softplus"])
    "did you mean 'sigmoid'?"
    """
    folded = {str(k).casefold(): str(k) for k in sorted(candidates)}
    close = difflib.get_close_matches(str(name).casefold(), list(folded), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(folded[c]) for c in close)}?" if close else ""


def name_hint(name: str, candidates: Iterable[str]) -> str:
    """Return a hint for an unknown name: similar names, or all names if there are only a few.

    >>> name_hint("zz", ["ab", "cd"])
    'choose one of ab, cd'
    """
    names = list(candidates)
    if similar := did_you_mean(name, names):
        return similar
    if not 0 < len(names) <= _FEW:
        return ""
    return f"choose one of {', '.join(names)}" if len(names) > 1 else f"choose {names[0]}"


def join_names(names: Iterable[str], limit: int = _FEW) -> str:
    """Join names with commas; after ``limit`` names, only count the remaining names.

    >>> join_names(["a", "b", "c"]), join_names(["a", "b", "c"], 1)
    ('a, b, c', 'a and 2 more')
    """
    items = list(names)
    more = f" and {len(items) - limit:,} more" if len(items) > limit else ""
    return ", ".join(items[:limit]) + more


def join_words(words: Iterable[str], conjunction: str = "and") -> str:
    """Join words with commas, and the last one with a conjunction.

    >>> join_words(["a", "b", "c"]), join_words([".py", ".ipynb"], "or"), join_words(["a"])
    ('a, b and c', '.py or .ipynb', 'a')
    """
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def pluralize(count: int, singular: str, plural: str = "") -> str:
    """Return a count with its noun, in the singular or plural.

    >>> pluralize(1, "pass", "passes"), pluralize(2, "input")
    ('1 pass', '2 inputs')
    """
    return f"{format_count(count)} {singular if count == 1 else plural or singular + 's'}"


def format_count(count: int, limit: int = 10**30) -> str:
    """Format a count with thousands separators; above ``limit``, as a power of ten.

    >>> format_count(12345), format_count(2**20_000)
    ('12,345', 'about 10^6020')
    """
    return f"{count:,}" if count < limit else f"about 10^{int(count.bit_length() * 0.30103)}"
