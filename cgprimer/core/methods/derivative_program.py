"""The result of every method: a tape, its passes, and what each pass adds to which derivative.

A method is a function ``differentiate(tape, of, wrt) -> DerivativeProgram``. A *pass* is one run of
the tape with some leaves set: seeds of tangents or adjoints, or one variable moved by a step. Each
pass names the outputs to read. A program is plain data, so the cost of a method is known before
anything runs: ``len(program.tape)`` operations times ``program.pass_count`` passes.
:mod:`cgprimer.core.evaluation.runner` runs programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.language.value_names import parse_element
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import reachable
from cgprimer.core.tape.tape_entries import Contribution
from cgprimer.errors import UsageError, join_names, pluralize
from cgprimer.support.array_values import zeros

if TYPE_CHECKING:
    from cgprimer.core.methods.step_rule import StepRule

Names = str | Sequence[str]
Number = Any  # a float, a complex or mpmath number, or an array of samples
Inputs = Mapping[str, Any]  # columns or scalars: a number or an array for each name
Index = tuple[int, ...]
Entry = tuple[str, str, Index, Index]  #: ``of``, ``wrt``, ``row`` and ``column`` of a read


class Read(NamedTuple):
    """Add ``weight`` times an output to the derivative of ``of`` with respect to ``wrt``.

    Attributes:
        of, wrt: names of the derivative.
        output: the output of the tape.
        weight: the factor of the output, in units of one over the step if a variable is moved.
        row: the element of the array ``of`` that is differentiated; ``()`` for all of ``of``.
        column: the element of the array ``wrt`` to differentiate by; ``()`` for all of ``wrt``.
    """

    of: str
    wrt: str
    output: str
    weight: float = 1.0
    row: Index = ()
    column: Index = ()


class Shift(NamedTuple):
    """A variable moved by a multiple of its step.

    Attributes:
        name: the variable.
        leaf: the leaf that is changed: the variable, or the column added to an inner variable.
        steps: the multiple; imaginary for a complex step.
    """

    name: str
    leaf: str
    steps: complex

    def __str__(self) -> str:
        multiple = "i times its step" if self.steps == 1j else f"{self.steps:+g} step"
        return f"{self.name} moved by {multiple}"


@dataclass(frozen=True)
class Pass:
    """One run of the tape.

    Attributes:
        reads: the contributions of the run to derivatives.
        seeds: scalars of the tape that the run sets.
        shift: the variable that the run moves, if it moves one.
    """

    reads: tuple[Read, ...]
    seeds: dict[str, float] = field(default_factory=dict)
    shift: Shift | None = None

    def __str__(self) -> str:
        if self.shift:
            return str(self.shift)
        from cgprimer.core.methods.program_printing import format_seeds

        return format_seeds(self.seeds)

    def accumulate_reads(self, totals: dict[Entry, Number], outputs: Mapping[str, Number]) -> None:
        """Add the contributions of the run to the totals so far."""
        for of, wrt, output, weight, row, column in self.reads:
            contribution = outputs[output] if weight == 1.0 else weight * outputs[output]
            entry = of, wrt, row, column
            totals[entry] = totals[entry] + contribution if entry in totals else contribution


@dataclass(frozen=True, slots=True)
class Derivatives:
    """The results of a program.

    Attributes:
        values: the value of each differentiated name.
        derivatives: the derivative for each pair ``(of, wrt)``.

    Each is a number, an array of shape (samples,), or a sum over the samples.
    """

    values: dict[str, Number]
    derivatives: dict[tuple[str, str], Number]


class Execute(Protocol):
    """A tape compiled by an engine."""

    def __call__(self, columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Number]:
        """Return an array of shape (samples,) for each output, or its sum over the samples.

        Args:
            columns: for each column of the tape a contiguous array of shape (samples,).
            scalars: for each scalar of the tape a number.
            samples: the number of samples; a tape without columns does not determine it.
        """


@dataclass(frozen=True, eq=False, repr=False)
class DerivativeProgram:
    """The derivatives of ``of`` with respect to ``wrt``, ready for an engine.

    Attributes:
        method: the name of the method.
        tape: computes the values and the outputs that the passes read.
        of: differentiated names; the tape has outputs of these names, or of their elements.
        wrt: names with respect to which.
        passes: the runs that are needed.
        paths: for the sum over paths, the paths from each ``wrt`` to each ``of``.
        primal_names: the names of the tape that was differentiated, for readable printing.
        shapes: the shapes of arrays among ``of`` and ``wrt``: a derivative has the shape of the
            former followed by the shape of the latter.
        step_rule: the sizes of the steps of finite differences; None if no pass moves a variable.
        elements: the shapes of arrays whose elements are leaves of the tape, if the tape was
            written out in scalars. Reads then name elements.
    """

    method: str
    tape: Tape
    of: tuple[str, ...]
    wrt: tuple[str, ...]
    passes: Sequence[Pass]
    paths: dict[tuple[str, str], tuple[tuple[str, ...], ...]] | None = None
    primal_names: frozenset[str] = frozenset()
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    step_rule: StepRule | None = field(default=None, kw_only=True)
    elements: Mapping[str, Shape] = field(default_factory=dict, kw_only=True)

    @cached_property
    def seeds_only(self) -> bool:
        """True if runs differ by their seeds alone, so that one tape can hold all of them."""
        return self.step_rule is None and not self.elements

    @cached_property
    def is_complex(self) -> bool:
        """True if the program needs an engine with complex numbers."""
        return any(one.shift is not None and complex(one.shift.steps).imag for one in self.passes)

    @cached_property
    def by_sample(self) -> bool:
        """True if each sample has its own step, so that quotients come before sums over samples."""
        if self.step_rule is None:
            return False
        scalars = self.tape.of_kind("scalar")
        return any(one.shift is not None and one.shift.leaf not in scalars for one in self.passes)

    @property
    def by_column(self) -> bool:
        """True if a pass computes derivatives with respect to one element, not those of one."""
        return any(read.column for one in self.passes for read in one.reads)

    @property
    def pass_count(self) -> int:
        """The number of runs of the tape, or of paths walked for the sum over paths."""
        return len(self.passes) if self.paths is None else sum(map(len, self.paths.values()))

    @property
    def shares(self) -> tuple[Contribution, ...]:
        """The contributions along the edges of the primal, in the order of the sweep.

        >>> import cgprimer
        >>> tape = cgprimer.tape(cgprimer.parse("xb = 2*xa; xw = xb*xa"))
        >>> made = cgprimer.differentiate(tape, wrt="xa")
        >>> [[made.tape.labels[end] for end in (s.tail, s.head)] for s in made.shares]
        [['xb', 'xw'], ['xa', 'xw'], ['xa', 'xb']]
        """
        return self.tape.shares

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The leaves of the graph that must have a value; an element stands for its array."""
        wanted = reachable(self.tape, self.tape.outputs.values())
        leaves = [leaf.name for leaf, w in zip(self.tape.leaves, wanted, strict=False) if w]
        return tuple(dict.fromkeys(parse_element(name).array for name in leaves))

    @cached_property
    def executed(self) -> Tape:
        """The tape without instructions that only contributions need: ``-y`` in ``x - y``."""
        from cgprimer.core.tape.tape_passes import remove_dead_code

        bare = replace(self.tape, shares=()) if self.tape.shares else self.tape
        needed = reachable(bare, bare.outputs.values())
        return bare if all(needed[len(bare.leaves) :]) else remove_dead_code(bare)

    @property
    def operation_count(self) -> int:
        """The operations of the whole gradient: instructions of the tape times runs."""
        return len(self.executed) * max(1, len(self.passes))

    @property
    def live_values(self) -> int:
        """The largest number of values alive at once in a run (8 bytes each, per sample)."""
        from cgprimer.core.tape.tape_passes import live_memory

        return live_memory(self.executed)

    def __repr__(self) -> str:
        return (
            f"<DerivativeProgram {self.method}: d({join_names(self.of)})/d({join_names(self.wrt)}),"
            f" {len(self.executed)} operations, {pluralize(self.pass_count, 'pass', 'passes')}>"
        )

    def __str__(self) -> str:
        from cgprimer.core.methods.program_printing import format_program

        # The seeds of a single pass are constants of the program; several passes set them.
        seeds = self.passes[0].seeds if len(self.passes) == 1 else {}
        passes = [str(one) or ("nothing moved" if self.step_rule else "") for one in self.passes]
        return format_program(self.executed, self.primal_names, seeds, passes, self.paths)


Differentiator = Callable[..., DerivativeProgram]  #: of (tape, of, wrt, **options): a method


def select_array_shapes(tape: Tape, names: Iterable[str]) -> dict[str, Shape]:
    """Return the shapes of the names that are arrays."""
    shapes = {name: tape.shapes[tape.index(name)] for name in names}
    return {name: shape for name, shape in shapes.items() if shape}


def iterate_unit_seeds(
    seeds: Mapping[str, tuple[str, Shape]],
) -> Iterator[tuple[str, Index, dict[str, Number]]]:
    """Yield each element of each name: the name, its index, and all seeds if its own is 1.

    Args:
        seeds: for each seed the name that it belongs to, and its shape.
    """
    zero_seeds: dict[str, Number] = {
        seed: zeros(shape) if shape else 0.0 for seed, (_, shape) in seeds.items()
    }
    for seed, (name, shape) in seeds.items():
        if 0 in shape:
            yield name, (0,) * len(shape), zero_seeds
        for index in product(*map(range, shape)):
            one: Number = zeros(shape) if shape else 1.0
            if shape:
                one[index] = 1.0
            yield name, index, {**zero_seeds, seed: one}


def build_single_pass_program(
    method: str,
    builder: Builder,
    tape: Tape,
    wrt: tuple[str, ...],
    values: Mapping[str, int],
    derivatives: Mapping[tuple[str, str], int],
    **more: Any,
) -> DerivativeProgram:
    """Return a program of one pass.

    Args:
        method: the name of the method.
        builder: holds all values and derivatives.
        tape: the primal.
        wrt: names with respect to which.
        values: the value of the builder for each differentiated name.
        derivatives: the value of the builder for each pair ``(of, wrt)``.
        more: other attributes of the program.
    """
    reads = tuple(Read(of, name, derivative_name(of, name)) for of, name in derivatives)
    outputs = {**values, **{derivative_name(*pair): index for pair, index in derivatives.items()}}
    for name, index in outputs.items():
        builder.names.setdefault(name, index)
    derived, primal = builder.finish(outputs, prune=True), frozenset(tape.names)
    return DerivativeProgram(
        method, derived, tuple(values), wrt, (Pass(reads),), primal_names=primal, **more
    )


def derivative_name(of: str, wrt: str) -> str:
    """Return the name of an output that holds a derivative; printed ``d_xw_ab``.

    >>> derivative_name("xw", "ab")
    'd.xw.ab'
    """
    return f"d.{of}.{wrt}"


def normalize_names(names: Names, argument: str) -> tuple[str, ...]:
    """Return a name or names as a tuple without repetitions.

    Raises:
        UsageError: no names, or values that are not strings.
    """
    if isinstance(names, str):
        return (names,)
    unique = tuple(dict.fromkeys(names)) if isinstance(names, Iterable) else ()
    if not unique or not all(isinstance(name, str) for name in unique):
        raise UsageError(f"`{argument}` must be a name or names, got {names!r}")
    return unique


def find_unused_name(kind: str, name: str, tape: Tape) -> str:
    """Return a free name for an adjoint, tangent or seed: ``bar.xz``, the second time ``bar2.xz``.

    >>> find_unused_name("bar", "xz", Tape((), (), {}, {"bar.xz": 0}))
    'bar2.xz'
    """
    candidate, number = f"{kind}.{name}", 1
    while candidate in tape.names or candidate in tape.outputs:
        number += 1
        candidate = f"{kind}{number}.{name}"
    return candidate
