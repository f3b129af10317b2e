"""Reverse mode: a forward pass for the values and a backward pass for the adjoints.

The adjoint of a value is the derivative of the output with respect to the value. From the last
instruction to the first, the adjoint of each result, times the local partial derivative, is added
to the adjoint of each operand:

    bar[operand] += bar[result] * d(result)/d(operand)

One pass computes the derivatives of one output with respect to all parameters. It costs a small
multiple of computing the output (Baur and Strassen 1983; Griewank and Walther, "Evaluating
Derivatives", 2nd ed., chapter 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Pass,
    Read,
    find_unused_name,
    iterate_unit_seeds,
    select_array_shapes,
)
from cgprimer.core.operations.primitive_registry import Applied, find_operation
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_dependents, reachable


def differentiate(
    tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], *, simplify: bool = True
) -> DerivativeProgram:
    """Return the reverse-mode derivative program, with one pass per name in ``of``.

    Args:
        tape: the tape to differentiate.
        of: the names to differentiate.
        wrt: the names with respect to which to differentiate.
        simplify: simplify products with the seed and compute equal products once. If False, the
            program shows each adjoint as upstream gradient times local derivative.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xz = a*xa; xw = b + xz"))
    >>> print(cgprimer.differentiate(tape, simplify=False))
    # given: xa, a, b
    # primal
    xz = a*xa
    xw = b + xz
    # derivative
    bar_xw = 1
    bar_b = bar_xw
    bar_xz = bar_xw
    bar_a = bar_xz*xa
    # output  xw
    # output  bar_a
    # output  bar_b
    # 1 pass
    """
    roots = [tape.index(name) for name in of]
    sources = [tape.index(name) for name in wrt]
    needed = reachable(tape, roots)
    active = find_dependents(tape, sources)

    builder = Builder() if simplify else _UnsimplifiedBuilder(tape)
    value = builder.extend(tape, keep=needed)
    shapes = select_array_shapes(tape, (*of, *wrt))
    seeds = _choose_seeds(tape, of, shapes, simplify)
    adjoints = _seed_adjoints(builder, roots, seeds)
    keys = _find_adjoint_keys(value, active)
    region = [i for i in range(len(tape.leaves), tape.size) if keys.get(i) == i]
    sweep(builder, iterate_backwards(tape, value, region, keys), adjoints)
    _name_adjoints(builder, tape, region, adjoints)

    zero = builder.constant(0.0)
    outputs = {name: value[root] for name, root in zip(of, roots, strict=True)}
    bars = {name: find_unused_name("bar", name, tape) for name in wrt}
    for name, source in zip(wrt, sources, strict=True):
        outputs[bars[name]] = builder.broadcast(adjoints.get(source, zero), shapes.get(name, ()))
        builder.names.setdefault(bars[name], outputs[bars[name]])
    passes = tuple(
        Pass(tuple(Read(name, w, bars[w], row=row) for w in wrt), seed_values)
        for name, row, seed_values in (iterate_unit_seeds(seeds) if seeds else [(of[0], (), {})])
    )
    finished = builder.finish(outputs, prune=True)
    names = frozenset(tape.names)
    return DerivativeProgram(
        "reverse", finished, of, wrt, passes, primal_names=names, shapes=shapes
    )


def _find_adjoint_keys(value: Mapping[int, int], active: Sequence[bool]) -> dict[int, int]:
    """Map each active tape value to the first tape value that is equal to it in the builder.

    Simplification merges ``-(-x)`` and ``x``. Such values have one adjoint: with two, ``x`` would
    get the contributions to ``-(-x)`` as well as what reaches it through the negations.
    """
    first: dict[int, int] = {}
    return {index: first.setdefault(new, index) for index, new in value.items() if active[index]}


def _choose_seeds(
    tape: Tape, of: tuple[str, ...], shapes: Mapping[str, Shape], simplify: bool
) -> dict[str, tuple[str, Shape]]:
    """Return the name and shape of the output for each seed adjoint, keyed by seed.

    Several outputs, or the elements of an array, have seeds, of which each pass sets one to 1. The
    seed of a single scalar output is the constant 1 if the program is simplified.
    """
    several = len(of) > 1 or of[0] in shapes
    kind = "seed" if several else "bar"
    seeded = of if several or not simplify else ()
    return {find_unused_name(kind, name, tape): (name, shapes.get(name, ())) for name in seeded}


def _seed_adjoints(
    builder: Builder, roots: Sequence[int], seeds: Mapping[str, tuple[str, Shape]]
) -> dict[int, int]:
    """Emit the adjoints of the outputs: a leaf for each seed, or the constant 1 without seeds.

    Returns:
        The value in the builder of the adjoint of each root, keyed by its index on the tape.
    """
    if not seeds:
        return {roots[0]: builder.constant(1.0)}
    adjoints: dict[int, int] = {}
    for root, (name, (_, shape)) in zip(roots, seeds.items(), strict=False):
        seed = builder.leaf("scalar", name, shape=shape)
        adjoints[root] = builder.emit("add", adjoints[root], seed) if root in adjoints else seed
    return adjoints


def _name_adjoints(
    builder: Builder, tape: Tape, region: Sequence[int], adjoints: Mapping[int, int]
) -> None:
    """Name the adjoints of named values, such as ``bar.xz`` for the adjoint of ``xz``."""
    for index in reversed(region):
        if index in adjoints and index in tape.labels:
            name = find_unused_name("bar", tape.labels[index], tape)
            builder.names.setdefault(name, adjoints[index])


class _UnsimplifiedBuilder(Builder):
    """A builder that does not simplify products, and emits a value for each named adjoint."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(share=False)
        self.labels = tape.labels

    def add_contribution(
        self, totals: dict[int, int], to: int, product: int, tail: int, head: int, partial: int
    ) -> None:
        """Add a product to an adjoint; copy it if it would be another adjoint unchanged."""
        if to in self.labels and self.value_of(partial) == 1.0:  # otherwise one value has two names
            product = self.emit("copy", product, pinned=True)
        super().add_contribution(totals, to, product, tail, head, partial)


def sweep(
    builder: Any,
    instructions: Iterable[SweepInstruction | tuple[Any, ...]],
    adjoints: dict[Any, Any],
) -> None:
    """Propagate adjoints backward through instructions, from results to operands.

    Args:
        builder: the builder that emits the products and sums. The eager builder of
            :mod:`cgprimer.recording` computes numbers instead.
        instructions: the instructions, from the last to the first.
        adjoints: the seed adjoints; updated with the adjoint of each value that is reached.
    """
    for head, primitive, tails, values, out in instructions:
        bar = adjoints.get(head)
        if bar is None or not tails:  # not needed for the output, or a leaf
            continue
        operation = find_operation(primitive)
        for position, tail in enumerate(tails):
            if tail is None:
                continue
            contribution = operation.vjp(builder, position, bar, values, out)
            if contribution is not None:
                product, partial = contribution
                builder.add_contribution(adjoints, tail, product, values[position], out, partial)


class SweepInstruction(NamedTuple):
    """An instruction of a reverse sweep.

    Attributes:
        head: the key of the result in the dictionary of adjoints.
        primitive: the primitive or array operation.
        tails: the keys of the operands; None for operands whose adjoints are not needed.
        values: the operands, as values of the builder.
        out: the result, as a value of the builder.
    """

    head: Any
    primitive: Applied
    tails: tuple[Any, ...]
    values: tuple[Any, ...]
    out: Any


def iterate_backwards(
    tape: Tape, value: Mapping[int, int], region: Iterable[int], keys: Mapping[int, int]
) -> Iterator[tuple[Any, ...]]:
    """Yield instructions of a tape for a reverse sweep, from the last to the first.

    Args:
        tape: the tape.
        value: the value in the builder for each value of the tape.
        region: the indices of the results of the instructions, in ascending order.
        keys: the key of the adjoint of each value of the tape whose adjoint is needed.
    """
    for index in reversed(list(region)):
        primitive, operands = tape.instructions[index - len(tape.leaves)]
        tails = tuple([keys.get(o) for o in operands])
        values = tuple([value[o] for o in operands])
        yield (
            index,
            primitive,
            tails,
            values,
            value[index],
        )  # as a SweepInstruction, in half of the time
