"""What all differentiators have in common: a program is a tape, its passes, and what to read.

``differentiate(tape, of, wrt) -> DerivativeProgram``. A *pass* is one run of the tape with some
leaves set (seeds of tangents or adjoints, a shifted variable); each pass names the outputs to
read and what they count for. So the cost of a method can be seen before anything runs:
``len(program.tape)`` operations times ``program.pass_count`` passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cgprimer.core.tape.passes import live_memory
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import UsageError, plural

Names = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Read:
    """Add ``weight`` times an output to the derivative of ``of`` with respect to ``wrt``."""

    of: str
    wrt: str
    output: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of the tape.

    Attributes:
        reads: what the run contributes to which derivatives.
        seeds: scalars of the tape that this run sets.
        shifted: the variable that is moved in this run; empty for none.
        steps: by how many of its steps it is moved; imaginary for a complex step.
    """

    reads: tuple[Read, ...]
    seeds: dict[str, float] = field(default_factory=dict)
    shifted: str = ""
    steps: complex = 0.0


@dataclass(frozen=True, slots=True)
class StepRule:
    """How far a finite difference moves a variable: ``size``, or chosen from the variable.

    The chosen step is ``relative(bits) * max(1, |value|)``, with the value rounded down to a
    power of two so that the shift itself is exact in most cases. A step has the unit of its
    variable.

    Attributes:
        size: the step, if it is given.
        root: 2 for forward, 3 for central differences: the step is this root of the precision;
            0 for a complex step, which can be as small as one likes.
    """

    size: float | None
    root: int

    @property
    def imaginary(self) -> bool:
        """Whether the step is along the imaginary axis."""
        return self.root == 0

    def relative(self, bits: int) -> float:
        """The step for a variable of size 1, in a precision of so many binary digits.

        >>> StepRule(None, 3).relative(52) == 2.0**-17
        True
        """
        return 2.0 ** -round(bits / self.root) if self.root else 2.0**-300


@dataclass(frozen=True, eq=False, repr=False)
class DerivativeProgram:
    """The derivatives of ``of`` with respect to ``wrt``, ready for an engine.

    Attributes:
        method: the differentiator that made it.
        tape: computes the values and what the passes read.
        of: names that are differentiated; the tape has outputs of these names.
        wrt: names with respect to which.
        passes: the runs that are needed.
        step: how far finite differences shift; None for the other methods.
        shifts: for an inner variable that is shifted, the column that is added to it.
        paths: for the sum over paths, the paths from each ``wrt`` to each ``of``.
        primal_names: the names of the tape that was differentiated, for readable printing.
    """

    method: str
    tape: Tape
    of: tuple[str, ...]
    wrt: tuple[str, ...]
    passes: tuple[Pass, ...]
    step: StepRule | None = None
    shifts: dict[str, str] = field(default_factory=dict)
    paths: dict[tuple[str, str], tuple[tuple[str, ...], ...]] | None = None
    primal_names: frozenset[str] = frozenset()

    @property
    def pass_count(self) -> int:
        """Passes over the graph: runs of the tape, or paths walked for the sum over paths."""
        if self.paths is not None:
            return sum(len(paths) for paths in self.paths.values())
        return len(self.passes)

    @property
    def operation_count(self) -> int:
        """Operations for the whole gradient: instructions of the tape times runs of it."""
        return len(self.tape) * max(1, len(self.passes))

    @property
    def live_values(self) -> int:
        """The most values alive at one time in one run (one value is 8 bytes per sample)."""
        return live_memory(self.tape)

    def __repr__(self) -> str:
        return (
            f"<DerivativeProgram {self.method}: d({', '.join(self.of)})/d({', '.join(self.wrt)}),"
            f" {len(self.tape)} operations, {plural(self.pass_count, 'pass', 'passes')}>"
        )

    def __str__(self) -> str:
        from cgprimer.core.tape.printing import code

        return f"{code(self.tape, primal=self.primal_names)}\n{self._passes_text()}"

    def _passes_text(self) -> str:
        if self.paths is not None:
            walks = sorted(
                {path for paths in self.paths.values() for path in paths}, key=self._path_key
            )
            lines = [f"# {plural(len(walks), 'path', 'paths')}:"]
            return "\n".join([*lines, *(f"#   {' -> '.join(path)}" for path in walks)])
        lines = [f"# {plural(len(self.passes), 'pass', 'passes')}"]
        if len(self.passes) > 1:
            from cgprimer.core.tape.printing import shown_name

            for number, run in enumerate(self.passes, start=1):
                if run.shifted:
                    lines.append(f"#   {number}: {run.shifted} moved by {_multiple(run.steps)}")
                elif run.seeds:
                    ones = [shown_name(n) for n, v in run.seeds.items() if v]
                    lines.append(f"#   {number}: {', '.join(ones)} = 1, the other seeds 0")
        return "\n".join(lines)

    @staticmethod
    def _path_key(path: tuple[str, ...]) -> tuple[str, int, tuple[str, ...]]:
        return path[0], len(path), path


class Differentiator(Protocol):
    """A method: a function from a tape to a program."""

    def __call__(
        self, tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], **options: object
    ) -> DerivativeProgram:
        """Differentiate."""


def _multiple(steps: complex) -> str:
    if isinstance(steps, complex):
        return "i times its step"
    return f"{steps:+g} step"


def as_names(names: Names, what: str) -> tuple[str, ...]:
    """One name or several as a tuple without repetitions.

    Raises:
        UsageError: there is none.
    """
    found = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    if not found or not all(isinstance(n, str) for n in found):
        raise UsageError(f"{what} must be a name or names")
    return found


def fresh(kind: str, name: str, tape: Tape) -> str:
    """A name for an adjoint, tangent or seed: ``bar.xz``, in a second differentiation ``bar2.xz``.

    >>> fresh("bar", "xz", Tape((), (), {}, {"bar.xz": 0}))
    'bar2.xz'
    """
    made, number = f"{kind}.{name}", 1
    while made in tape.names or made in tape.outputs:
        number += 1
        made = f"{kind}{number}.{name}"
    return made


def derivative_name(of: str, wrt: str) -> str:
    """What an output is called that holds a derivative; printed ``d_xw_ab``.

    >>> derivative_name("xw", "ab")
    'd.xw.ab'
    """
    return f"d.{of}.{wrt}"
