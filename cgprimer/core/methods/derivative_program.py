"""The result of every method: a tape, its passes, and the derivatives that each pass computes.

A method is a function ``differentiate(tape, of, wrt) -> DerivativeProgram``. A *pass* is one run of
the tape. It sets the seeds of tangents or adjoints, or (finite differences) shifts one variable,
and lists the outputs to read. A program is plain data, so the cost of a method is known before
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
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import reachable
from cgprimer.core.tape.tape_entries import Contribution
from cgprimer.errors import UsageError, join_names, pluralize
from cgprimer.support.array_values import zeros
from cgprimer.support.value_names import internal_name, parse_element

if TYPE_CHECKING:
    from cgprimer.core.methods.step_rule import StepRule

Names = str | Sequence[str]
Number = Any  # a float, a complex or mpmath number, or an array of samples
Inputs = Mapping[str, Any]  # the values of columns or scalars, keyed by name
Index = tuple[int, ...]
Entry = tuple[str, str, Index, Index]  #: ``of``, ``wrt``, ``row`` and ``column`` of a read


class Read(NamedTuple):
    """An output of a pass that is added, times a weight, to a derivative.

    Attributes:
        of: the name of the differentiated value.
        wrt: the name of the variable with respect to which it is differentiated.
        output: the output of the tape.
        weight: the factor of the output; finite differences divide it by the step.
        row: the index of the differentiated element if ``of`` is an array; ``()`` for all.
        column: the index of the element of ``wrt`` if it is an array; ``()`` for all.
    """

    of: str
    wrt: str
    output: str
    weight: float = 1.0
    row: Index = ()
    column: Index = ()


class Shift(NamedTuple):
    """A shift of one variable by a multiple of its step, for finite differences.

    Attributes:
        name: the name of the variable.
        leaf: the leaf to change: the variable itself, or the column added to an inner variable.
        steps: the number of steps; imaginary for a complex step.
    """

    name: str
    leaf: str
    steps: complex

    def __str__(self) -> str:
        multiple = "i times its step" if self.steps == 1j else f"{self.steps:+g} step"
        return f"{self.name} shifted by {multiple}"


@dataclass(frozen=True)
class Pass:
    """One run of the tape of a derivative program.

    Attributes:
        reads: the outputs to read, and the derivatives to add them to.
        seeds: the values of the seeds of tangents or adjoints, keyed by name.
        shift: for finite differences, the variable to shift; else None.
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
        """Add the outputs that this pass reads to the totals of all passes.

        Args:
            totals: the derivatives so far; updated.
            outputs: the value of each output of the tape in this pass.
        """
        for of, wrt, output, weight, row, column in self.reads:
            contribution = outputs[output] if weight == 1.0 else weight * outputs[output]
            entry = of, wrt, row, column
            totals[entry] = totals[entry] + contribution if entry in totals else contribution


@dataclass(frozen=True, slots=True)
class Derivatives:
    """The computed values and derivatives of a derivative program.

    Each is a number, an array of shape (samples,), or a sum over the samples.

    Attributes:
        values: the value of each differentiated name.
        derivatives: the derivative for each pair ``(of, wrt)``.
    """

    values: dict[str, Number]
    derivatives: dict[tuple[str, str], Number]


class Execute(Protocol):
    """The function that an engine returns for a tape: it runs the compiled tape."""

    def __call__(self, columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Number]:
        """Run the tape; return each output as an array of shape (samples,), or its sum.

        Args:
            columns: a contiguous array of shape (samples,) for each column of the tape.
            scalars: a number for each scalar of the tape.
            samples: the number of samples, which a tape without columns does not determine.
        """


@dataclass(frozen=True, eq=False, repr=False)
class DerivativeProgram:
    """A program that computes the derivatives of ``of`` with respect to ``wrt`` on any engine.

    Attributes:
        method: the name of the method.
        tape: the tape that computes the values and the outputs that the passes read.
        of: the differentiated names. The tape has outputs with these names, or with the names of
            their elements.
        wrt: the names with respect to which they are differentiated.
        passes: the runs of the tape.
        paths: for the method path-sum, the paths from each ``wrt`` to each ``of``; else None.
        primal_names: the names on the tape that was differentiated, for printing.
        shapes: the shapes of arrays among ``of`` and ``wrt``. A derivative has the shape of
            ``of``, followed by the shape of ``wrt``.
        step_rule: for finite differences, the rule for the step sizes; else None.
        elements: if the arrays were converted to scalars, the shapes of the arrays among the
            leaves. The reads then name elements.
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
        """True if passes differ only in their seeds, so that one tape can compute all of them."""
        return self.step_rule is None and not self.elements

    @cached_property
    def is_complex(self) -> bool:
        """True if the program requires an engine that supports complex numbers."""
        return any(one.shift is not None and complex(one.shift.steps).imag for one in self.passes)

    @cached_property
    def by_sample(self) -> bool:
        """True if step sizes differ between samples, so that quotients are computed per sample."""
        if self.step_rule is None:
            return False
        scalars = self.tape.of_kind("scalar")
        return any(one.shift is not None and one.shift.leaf not in scalars for one in self.passes)

    @property
    def by_column(self) -> bool:
        """True if each pass differentiates with respect to a single element of an array."""
        return any(read.column for one in self.passes for read in one.reads)

    @property
    def pass_count(self) -> int:
        """The number of runs of the tape; for the method path-sum, the number of paths."""
        return len(self.passes) if self.paths is None else sum(map(len, self.paths.values()))

    @property
    def shares(self) -> tuple[Contribution, ...]:
        """The products that the chain rule adds for each edge of the graph, in sweep order.

        >>> import cgprimer
        >>> tape = cgprimer.tape(cgprimer.parse("xb = 2*xa; xw = xb*xa"))
        >>> program = cgprimer.differentiate(tape, wrt="xa")
        >>> [[program.tape.labels[end] for end in (c.tail, c.head)] for c in program.shares]
        [['xb', 'xw'], ['xa', 'xw'], ['xa', 'xb']]
        """
        return self.tape.shares

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The names of the inputs and parameters that must have a value."""
        wanted = reachable(self.tape, self.tape.outputs.values())
        leaves = [leaf.name for leaf, w in zip(self.tape.leaves, wanted, strict=False) if w]
        return tuple(dict.fromkeys(parse_element(name).array for name in leaves))

    @cached_property
    def executed(self) -> Tape:
        """The tape without instructions whose results are only recorded in contributions."""
        from cgprimer.core.tape.tape_passes import remove_dead_code

        bare = replace(self.tape, shares=()) if self.tape.shares else self.tape
        needed = reachable(bare, bare.outputs.values())
        return bare if all(needed[len(bare.leaves) :]) else remove_dead_code(bare)

    @property
    def operation_count(self) -> int:
        """The number of operations of all derivatives: instructions of the tape times passes."""
        return len(self.executed) * max(1, len(self.passes))

    @property
    def live_values(self) -> int:
        """The maximum number of values alive at the same time (8 bytes each, per sample)."""
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
        passes = [
            str(one) or ("no variable shifted" if self.step_rule else "") for one in self.passes
        ]
        return format_program(self.executed, self.primal_names, seeds, passes, self.paths)


Differentiator = Callable[..., DerivativeProgram]  #: a method: (tape, of, wrt, **options)


def select_array_shapes(tape: Tape, names: Iterable[str]) -> dict[str, Shape]:
    """Return the shapes of the named values that are arrays, keyed by name."""
    shapes = {name: tape.shapes[tape.index(name)] for name in names}
    return {name: shape for name, shape in shapes.items() if shape}


def iterate_unit_seeds(
    seeds: Mapping[str, tuple[str, Shape]],
) -> Iterator[tuple[str, Index, dict[str, Number]]]:
    """Yield one set of seed values per element: 1 for the element, and 0 for all others.

    Args:
        seeds: for each seed, the name of the variable that it belongs to, and its shape.

    Yields:
        The name of the variable, the index of the element, and the values of all seeds.
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


def derivative_name(of: str, wrt: str) -> str:
    """Return the name of the output for the derivative of ``of`` with respect to ``wrt``.

    >>> derivative_name("xw", "ab")
    'd.xw.ab'
    """
    return internal_name("d", of, wrt)


def normalize_names(names: Names, argument: str) -> tuple[str, ...]:
    """Convert a name or a sequence of names to a tuple without duplicates.

    Args:
        names: a string or a sequence of strings.
        argument: the name of the argument, for the error message.

    Raises:
        UsageError: the sequence is empty, or has values that are not strings.
    """
    if isinstance(names, str):
        return (names,)
    listed = tuple(names) if isinstance(names, Iterable) else ()
    if not listed or not all(isinstance(name, str) for name in listed):
        raise UsageError(f"`{argument}` must be a name or a sequence of names, got {names!r}")
    return tuple(dict.fromkeys(listed))


def find_unused_name(kind: str, name: str, tape: Tape) -> str:
    """Return an unused name for an adjoint, tangent or seed, such as ``bar.xz`` or ``bar2.xz``.

    Args:
        kind: the first part of the name, such as ``bar``, ``dot`` or ``seed``.
        name: the name of the variable.
        tape: the tape whose names are taken.

    >>> find_unused_name("bar", "xz", Tape((), (), {}, {"bar.xz": 0}))
    'bar2.xz'
    """
    candidate, number = internal_name(kind, name), 1
    while candidate in tape.names or candidate in tape.outputs:
        number += 1
        candidate = internal_name(kind, name, number=number)
    return candidate
