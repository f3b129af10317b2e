"""Every exception of the package, and the text with a caret that points into the source.

All of them descend from :class:`CgprimerError`, so ``except cgprimer.CgprimerError`` catches
whatever a user of the package can do wrong. ``exit_code`` is what the command line leaves
with: 2 for wrong use or unreadable input, 1 for a job that failed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

_FEW = 8  # names that a hint may list
# What would steer the terminal is shown as one sign, so that carets stay in their place.
VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
VISIBLE |= dict.fromkeys([*range(0x7F, 0xA0), 0x200E, 0x200F], 0xB7)
VISIBLE |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xB7)


@dataclass(frozen=True)
class Source:
    """A text and what to call it in messages.

    >>> Source("a.cg", "xa = 1\\nxb = 2").position(9)
    (2, 3)
    """

    name: str
    text: str

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - self.text.rfind("\n", 0, offset)

    def line(self, number: int) -> str:
        """The text of a line (counted from 1) without its end."""
        return self.text.split("\n")[number - 1].rstrip("\r")


@dataclass(frozen=True)
class Span:
    """The characters from ``start`` up to, not including, ``end`` of a source."""

    source: Source
    start: int
    end: int

    def where(self) -> str:
        """``file:line:column``, as editors and compilers write it."""
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def caret_lines(self, width: int = 96) -> str:
        """The line of the source with carets under the span, cut to ``width`` around it."""
        number, column = self.source.position(self.start)
        text = self.source.line(number)
        length = max(1, min(self.end - self.start, len(text) - column + 1))
        first = max(0, column - 1 - width // 2)
        shown, left = text[first : first + width], "... " if first else ""
        right = " ..." if first + width < len(text) else ""
        # Tabs stay tabs in the line of carets, so that both lines advance alike.
        pad = "".join(c if c == "\t" else " " for c in shown[: column - 1 - first])
        carets = "^" * max(1, min(length, width - (column - 1 - first)))
        return f"  {left}{shown}{right}\n  {' ' * len(left)}{pad}{carets}"


class CgprimerError(Exception):
    """What every error of the package descends from."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint

    def __reduce__(self) -> tuple[object, ...]:  # from one process to another, by no __init__
        return Exception.__new__, (type(self), *self.args), vars(self)

    def __str__(self) -> str:
        said = f"{self.message}\n  hint: {self.hint}" if self.hint else self.message
        return said.translate(VISIBLE)


class UsageError(CgprimerError):
    """An argument that does not fit: unknown name, wrong type, impossible choice."""

    exit_code = 2


class MissingValueError(UsageError):
    """A number was asked for that needs the value of a name that has none."""


class ShapeError(UsageError):
    """Shapes that do not go together; the message says both, the hint what would fit."""


class SourceError(CgprimerError):
    """Something wrong at a place in an expressions text.

    ``line`` and ``column`` count from 1. ``str`` gives ``file:line:column: message``, the line, a
    caret and the hint.
    """

    exit_code = 2

    def __init__(
        self, message: str, span: Span, *, hint: str = "", related: Iterable[tuple[str, Span]] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.span, self.related = span, tuple(related)
        self.line, self.column = span.source.position(span.start)

    def __str__(self) -> str:
        places = [(self.message, self.span), *self.related]
        parts = [f"{span.where()}: {text}\n{span.caret_lines()}" for text, span in places]
        parts += [f"  hint: {self.hint}"] if self.hint else []
        return "\n".join(parts).translate(VISIBLE)


class ExpressionSyntaxError(SourceError):
    """The text does not follow the grammar."""


class UnknownFunctionError(SourceError):
    """A name before a parenthesis is no function, or takes another number of arguments."""


class TextShapeError(SourceError, ShapeError):
    """Shapes in a text that do not go together: a caret shows the operation."""


class DefinitionError(SourceError):
    """A name is defined twice, or declared as something that it cannot be."""


class CycleError(SourceError):
    """The definitions run in a circle, so there is no order in which to compute them."""

    def __init__(self, message: str, span: Span, *, path: tuple[str, ...], hint: str = "") -> None:
        super().__init__(message, span, hint=hint)
        self.path = path


class TapeError(CgprimerError):
    """A tape broke a rule of :mod:`cgprimer.core.tape.verifier`: a defect of whoever built it."""


class DifferentiationError(CgprimerError):
    """A method cannot differentiate this tape."""


class ExpressionSwellError(DifferentiationError):
    """The expression is larger than the symbolic method's stated limit."""


class PathLimitError(DifferentiationError):
    """There are more paths than the path-sum method's stated limit."""


class EngineError(CgprimerError):
    """An engine cannot be used here, or cannot run this program."""


class DataError(CgprimerError):
    """A dataset, or a file that should hold one, is not as it must be."""

    exit_code = 2


class TrainingError(CgprimerError):
    """Training could not go on; ``run`` is the training run as far as it got, if there was one."""

    run: object = None


class NonFiniteError(TrainingError):
    """A value became infinite or not-a-number; says at which vertex, sample and step.

    ``why`` is a :class:`cgprimer.Why`: the operation, its operands and place, and a remedy.
    """

    why: object = None

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.why}" if self.why else super().__str__()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean 'tanh'?``, likeliest first, or an empty text where nothing comes near.

    >>> did_you_mean("sigmod", ["sin", "sigmoid", "softplus"])
    "did you mean 'sigmoid'?"
    """
    folded = {str(k).casefold(): str(k) for k in sorted(known)}
    close = difflib.get_close_matches(str(name).casefold(), list(folded), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(folded[c]) for c in close)}?" if close else ""


def name_hint(name: str, known: Iterable[str]) -> str:
    """The nearest names; where nothing comes near, all of them, if they are few.

    >>> name_hint("zz", ["ab", "cd"])
    'one of: ab, cd'
    """
    names = list(known)
    if (base := str(name).partition("[")[0]) != str(name) and base in names:
        return f"take {base!r} as a whole, or one place of it, such as {base}[0]"
    listed = f"one of: {', '.join(names)}" if 0 < len(names) <= _FEW else ""
    return did_you_mean(name, names) or listed


def listed(names: Iterable[str], most: int = _FEW) -> str:
    """The first names, and how many more there are.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], 1)
    ('a, b, c', 'a and 2 more')
    """
    known = list(names)
    more = f" and {len(known) - most:,} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def plural(count: int, one: str, many: str = "") -> str:
    """A count and its noun.

    >>> plural(1, "pass", "passes"), plural(2, "input")
    ('1 pass', '2 inputs')
    """
    return f"{counted(count)} {one if count == 1 else many or one + 's'}"


def counted(count: int, most: int = 10**30) -> str:
    """A count; one above `most`, that nobody would read, by its size.

    >>> counted(12345), counted(2**20_000)
    ('12,345', 'about 10^6020')
    """
    return f"{count:,}" if count < most else f"about 10^{int(count.bit_length() * 0.30103)}"
