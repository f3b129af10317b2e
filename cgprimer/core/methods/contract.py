"""What all differentiators have in common: a program is a tape, its passes, and what to read.

``differentiate(tape, of, wrt) -> DerivativeProgram``. A *pass* is one run of the tape with some
leaves set (seeds of tangents or adjoints); each pass names the outputs to read and what they
count for. So the cost of a method can be seen before anything runs:
``len(program.tape)`` operations times ``program.pass_count`` passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, NamedTuple, Protocol

from cgprimer.core.language.syntax import Shape
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import dead_code, live_memory, reachable
from cgprimer.core.tape.tape import Share, Tape, shape_of
from cgprimer.errors import UsageError, listed, plural
from cgprimer.numbers_and_arrays import all_finite, zeros

Names = str | Sequence[str]
Number = Any  # a float, a complex or mpmath number, or an array of samples
Given = Mapping[str, Any]  # columns or scalars: a number or an array for each name


class Read(NamedTuple):
    """Add ``weight`` times an output to the derivative of ``of`` with respect to ``wrt``."""

    of: str
    wrt: str
    output: str
    weight: float = 1.0


@dataclass(frozen=True)
class Pass:
    """One run of the tape.

    Attributes:
        reads: what the run contributes to which derivatives.
        seeds: scalars of the tape that this run sets.
    """

    reads: tuple[Read, ...]
    seeds: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        ones = []
        for seed, value in self.seeds.items():
            name = seed.replace(".", "_")
            if not getattr(value, "shape", ()):
                ones += [name] if value else []
            else:  # of an array: one of its elements
                import numpy as np

                ones += [f"{name}[{','.join(map(str, at))}]" for at in np.argwhere(value)]
        return f"{', '.join(ones)} = 1, the other seeds 0" if ones else ""

    def add_to(self, found: dict[tuple[str, str], Number], outputs: Mapping[str, Number]) -> None:
        """Add what the run contributes to the derivatives found so far."""
        for of, wrt, output, weight in self.reads:
            share = outputs[output] if weight == 1.0 else weight * outputs[output]
            found[of, wrt] = found[of, wrt] + share if (of, wrt) in found else share


@dataclass(frozen=True, slots=True)
class Derivatives:
    """What a program computed.

    Attributes:
        values: for each differentiated name its value.
        derivatives: for each pair ``(of, wrt)`` the derivative.

    Each is a number, an array of shape (samples,), or a sum over the samples.
    """

    values: dict[str, Number]
    derivatives: dict[tuple[str, str], Number]


class Execute(Protocol):
    """A tape that an engine has compiled."""

    def __call__(self, columns: Given, scalars: Given, samples: int) -> dict[str, Number]:
        """For each output an array of shape (samples,), or its sum over the samples.

        Args:
            columns: for each column of the tape a contiguous array of shape (samples,).
            scalars: for each scalar of the tape a number.
            samples: how many samples there are; needed where the tape has no column.
        """


@dataclass(frozen=True, eq=False, repr=False)
class DerivativeProgram:
    """The derivatives of ``of`` with respect to ``wrt``, ready for an engine.

    Attributes:
        method: the differentiator that made it.
        tape: computes the values and what the passes read.
        of: names that are differentiated; the tape has outputs of these names.
        wrt: names with respect to which.
        passes: the runs that are needed.
        paths: for the sum over paths, the paths from each ``wrt`` to each ``of``.
        primal_names: the names of the tape that was differentiated, for readable printing.
        shapes: of ``of`` and ``wrt``, where they are no single numbers: a derivative has the shape
            of the one followed by the shape of the other.
    """

    method: str
    tape: Tape
    of: tuple[str, ...]
    wrt: tuple[str, ...]
    passes: Sequence[Pass]
    paths: dict[tuple[str, str], tuple[tuple[str, ...], ...]] | None = None
    primal_names: frozenset[str] = frozenset()
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    #: Whether runs differ by their seeds alone, so that they can be put together in one tape.
    seeds_only: ClassVar[bool] = True
    #: Whether a pass gives the derivatives by one element, not those of one element.
    by_column: bool = field(default=False, kw_only=True)
    #: Whether it needs an engine with complex numbers.
    is_complex: bool = field(default=False, kw_only=True)
    #: Whether the derivatives are put together sample by sample: sums are taken after that.
    by_sample: bool = field(default=False, kw_only=True)

    def run(
        self,
        execute: Execute,
        columns: Given,
        scalars: Given,
        samples: int,
        *,
        alone: Callable[[int], Execute],
        bits: int = 52,
    ) -> Derivatives:
        """Make the passes and put together what they read.

        ``alone`` gives the tape of a pass without what its zero seeds would multiply; ``bits`` are
        the binary digits of the arithmetic.
        """
        values: dict[str, Number] = {}
        found: dict[tuple[str, str], Number] = {}
        for number, one in enumerate(self.passes):
            outputs = execute(columns, {**scalars, **one.seeds}, samples)
            values = values or {name: outputs[name] for name in self.of}
            # A seed of 0 that meets an infinite partial would make a finite derivative nan.
            if len(one.seeds) > 1 and not all(all_finite(outputs[r.output]) for r in one.reads):
                outputs = alone(number)(columns, scalars, samples)
            if self.shapes:  # a pass for each element: put together at the end
                for read in one.reads:
                    found.setdefault((read.of, read.wrt), []).append(outputs[read.output])
            else:
                one.add_to(found, outputs)
        if self.shapes:
            found = {pair: self._stacked(*pair, parts) for pair, parts in found.items()}
        return Derivatives(values, found)

    def _stacked(self, of: str, wrt: str, parts: list[Number]) -> Number:
        """Rows (reverse mode) or columns (forward mode) as one array."""
        import numpy as np

        head, tail = self.shapes.get(of, ()), self.shapes.get(wrt, ())
        if not (head or self.by_column):
            return parts[0]  # of a number, in one pass: nothing to put together, nothing to copy
        behind = 0 if self.by_column else len(tail)
        made = np.stack([np.asarray(part) for part in parts], axis=-1 - behind)
        samples = made.shape[: made.ndim - 1 - (len(head) if self.by_column else behind)]
        whole = samples + head + tail
        return np.zeros(whole) if 0 in whole else made.reshape(whole)

    @property
    def pass_count(self) -> int:
        """Passes over the graph: runs of the tape, or paths walked for the sum over paths."""
        return len(self.passes) if self.paths is None else sum(map(len, self.paths.values()))

    @property
    def shares(self) -> tuple[Share, ...]:
        """What flows along each edge of the primal, in the order of the sweep.

        >>> import cgprimer
        >>> tape = cgprimer.tape(cgprimer.parse("xb = 2*xa; xw = xb*xa"))
        >>> made = cgprimer.differentiate(tape, wrt="xa")
        >>> [[made.tape.labels[end] for end in (s.tail, s.head)] for s in made.shares]
        [['xb', 'xw'], ['xa', 'xw'], ['xa', 'xb']]
        """
        return self.tape.shares

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """Leaves of the graph that must have a value; an element stands for its array."""
        wanted = reachable(self.tape, self.tape.outputs.values())
        leaves = [leaf.name for leaf, w in zip(self.tape.leaves, wanted, strict=False) if w]
        return tuple(dict.fromkeys(name.partition("[")[0] for name in leaves))

    @cached_property
    def executed(self) -> Tape:
        """The tape without what shares alone need, such as ``-y`` where ``x - y`` is computed."""
        bare = replace(self.tape, shares=()) if self.tape.shares else self.tape
        needed = reachable(bare, bare.outputs.values())
        return bare if all(needed[len(bare.leaves) :]) else dead_code(bare)

    @property
    def operation_count(self) -> int:
        """Operations for the whole gradient: instructions of the tape times runs of it."""
        return len(self.executed) * max(1, len(self.passes))

    @property
    def live_values(self) -> int:
        """The most values alive at one time in one run (one value is 8 bytes per sample)."""
        return live_memory(self.executed)

    def __repr__(self) -> str:
        return (
            f"<DerivativeProgram {self.method}: d({listed(self.of)})/d({listed(self.wrt)}),"
            f" {len(self.executed)} operations, {plural(self.pass_count, 'pass', 'passes')}>"
        )

    def __str__(self) -> str:
        from cgprimer.core.tape.printing import code

        # The seeds of a single pass are constants of the program, those of several are given.
        seeds = self.passes[0].seeds if len(self.passes) == 1 else {}
        lines = [code(self.executed, primal=self.primal_names, seeds=seeds)]
        if self.paths is None:
            lines.append(f"# {plural(self.pass_count, 'pass', 'passes')}")
            texts = enumerate(map(str, self.passes), start=1)
            several = self.pass_count > 1
            lines += [f"#   {number}: {text}" for number, text in texts if text and several]
        else:
            walks = {path for paths in self.paths.values() for path in paths}
            by_length = sorted(walks, key=lambda path: (path[0], len(path), path))
            lines.append(f"# {plural(len(walks), 'path', 'paths')}:")
            lines += [f"#   {' -> '.join(path)}" for path in by_length]
        return "\n".join(lines)


Differentiator = Callable[..., DerivativeProgram]  #: of (tape, of, wrt, **options): a method


def shapes_of(tape: Tape, names: Iterable[str]) -> dict[str, Shape]:
    """The shapes of names that are no single numbers."""
    found = {name: shape_of(tape, tape.index(name)) for name in names} if tape.shapes else {}
    return {name: shape for name, shape in found.items() if shape}


def unit_seeds(seeds: Mapping[str, tuple[str, Shape]]) -> Iterator[tuple[str, dict[str, Number]]]:
    """For every element of every name, what all seeds are when its own is 1 and the others 0.

    Args:
        seeds: for each seed's name the name that it belongs to, and its shape.
    """
    still: dict[str, Number] = {
        seed: zeros(shape) if shape else 0.0 for seed, (_, shape) in seeds.items()
    }
    for seed, (name, shape) in seeds.items():
        for place in [()] if 0 in shape else product(*map(range, shape)):
            one: Number = zeros(shape) if shape else 1.0
            if shape:
                one[place] = 1.0
            yield name, {**still, seed: one}


def one_pass(
    method: str,
    builder: Builder,
    tape: Tape,
    wrt: tuple[str, ...],
    values: Mapping[str, int],
    derivatives: Mapping[tuple[str, str], int],
    **more: Any,
) -> DerivativeProgram:
    """A program of one pass: ``values`` of each name and ``derivatives`` of each pair, made."""
    reads = tuple(Read(of, name, derivative_name(of, name)) for of, name in derivatives)
    outputs = {**values, **{derivative_name(*pair): index for pair, index in derivatives.items()}}
    for name, index in outputs.items():
        builder.names.setdefault(name, index)
    made, primal = builder.finish(outputs, prune=True), frozenset(tape.names)
    return DerivativeProgram(
        method, made, tuple(values), wrt, (Pass(reads),), primal_names=primal, **more
    )


def derivative_name(of: str, wrt: str) -> str:
    """What an output is called that holds a derivative; printed ``d_xw_ab``.

    >>> derivative_name("xw", "ab")
    'd.xw.ab'
    """
    return f"d.{of}.{wrt}"


def as_names(names: Names, what: str) -> tuple[str, ...]:
    """One name or several as a tuple without repetitions."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        names = (names,)
    found = tuple(dict.fromkeys(names))
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
