"""A derivative program as lines that any language can write: a reader of its tape and its shares.

Nothing is derived here. Which edge a product belongs to is read from the shares that the sweep
left; which values are needed, from the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from cgprimer.analysis.export.identifiers import identifiers
from cgprimer.core.methods.derivative_program import derivative_name
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.core.tape.tape_printing import assign_printed_names
from cgprimer.errors import join_names
from cgprimer.expressions import ExpressionGraph, Shape
from cgprimer.support.value_names import is_internal
from cgprimer.tapes import DerivativeProgram, Leaf, Tape, labels, reachable

Operand = str | float  #: the identifier of a value, or a number


@dataclass(frozen=True)
class Line:
    """One instruction.

    Attributes:
        name: the identifier of the result.
        primitive: what is applied; ``copy`` for a second name of a value.
        operands: identifiers and numbers.
        ranks: how many axes each operand has, for one sample.
        note: which edges it belongs to; empty for values of the graph itself.
        begins: whether all of the graph's own lines stand before it, and the derivative behind.
        alias: whether it only gives a second name to a value: nothing reads it.
    """

    name: str
    primitive: Applied
    operands: tuple[Operand, ...]
    ranks: tuple[int, ...]
    note: str = ""
    begins: bool = False
    alias: bool = False


@dataclass(frozen=True)
class Routine:
    """A function to be written: what it is given, its lines, and what it returns."""

    arguments: tuple[str, ...]
    lines: tuple[Line, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Exported:
    """All that a target needs to write a file.

    Attributes:
        graph: what is exported, with its loss.
        program: its derivative.
        of: the name that is differentiated, one number.
        leaves: what the functions are given, in their order, without seeds.
        idents: the identifier of each name of the program's tape.
        shown: the identifier of each text that print shows, such as ``v1``.
        value: computes ``of``.
        sweep: computes the derivatives, or with seeds those along one direction.
        seeds: of forward mode: for each name the argument that is 1 in its pass.
    """

    graph: ExpressionGraph
    program: DerivativeProgram
    of: str
    leaves: tuple[Leaf, ...]
    idents: Mapping[str, str]
    shown: Mapping[str, str]
    value: Routine
    sweep: Routine
    seeds: Mapping[str, str]

    @property
    def wrt(self) -> tuple[str, ...]:
        """The names with respect to which it is differentiated."""
        return self.program.wrt

    @property
    def method(self) -> str:
        """What people call the method."""
        name = self.program.method
        return f"{name} mode" if name in ("forward", "reverse") else name

    @property
    def arguments(self) -> tuple[str, ...]:
        """What ``value`` and ``gradient`` are given, as identifiers."""
        return self.value.arguments

    @property
    def differences(self) -> bool:
        """Whether derivatives are quotients of values, without lines of their own."""
        return self.program.method == "finite-difference"

    def quotients(self) -> Iterator[tuple[str, str, str]]:
        """For each name how far it is moved, and the quotient of differences."""
        rule = self.program.step_rule
        assert rule is not None
        one_sided = any(one.shift is None for one in self.program.passes)
        for name in self.wrt:
            own = self.idents[name]
            up, down = (
                ", ".join([f"{a} {sign} move" if a == own else a for a in self.arguments])
                for sign in "+-"
            )
            base, width = (
                (", ".join(self.arguments), "move") if one_sided else (down, "(2.0 * move)")
            )
            size = repr(rule.size or rule.relative_step(52))
            size += "" if rule.size else f" * distance({own})"
            yield name, size, f"(value({up}) - value({base})) / {width}"

    def shape(self, name: str) -> Shape:
        """The shape of a name, for one sample."""
        return self.program.shapes.get(name, ())


def exported(
    graph: ExpressionGraph,
    program: DerivativeProgram,
    *,
    ascii_only: bool,
    taken: Callable[[str], bool],
) -> Exported:
    """Read a program of one output, a number, whose seeds are numbers.

    Args:
        graph: what it is the derivative of.
        program: the derivative.
        ascii_only, taken: of the target's identifiers, as :func:`identifiers` has them.
    """
    tape, (of,) = program.tape, program.of
    shown, texts = assign_printed_names(tape), labels(tape)
    own = reachable(tape, [tape.outputs[of]])
    free = (name for name in map("v{}".format, count(1)) if name not in {*texts, *shown.values()})
    for index in range(len(tape.leaves), tape.size):  # a value of the graph that is a slope, too
        if own[index] and is_internal(tape.labels.get(index, "")):
            texts[index] = next(free)
    first = [
        name for name in tape.names if not is_internal(name)
    ]  # a graph's own names stay, if any can
    known = identifiers(
        dict.fromkeys(filter(None, (*first, *program.wrt, *texts, *shown.values()))),
        ascii_only=ascii_only,
        taken=taken,
    )
    names = [known[text] if text else "" for text in texts]
    idents = {name: known[shown.get(name, name)] for name in (*shown, *program.wrt)}
    seeds = {
        read.wrt: seed for one in program.passes for seed, v in one.seeds.items() if v
        for read in one.reads
    }  # fmt: skip
    needed = reachable(tape, tape.outputs.values())
    leaves = tuple(
        leaf
        for leaf, wanted in zip(tape.leaves, needed, strict=False)
        if wanted and leaf.kind != "constant" and leaf.name not in seeds.values()
    )
    notes = _notes(program, names)
    for (_, name), paths in (program.paths or {}).items():
        said = ["-".join(path).replace("-", " -> ") for path in paths]
        notes[tape.outputs[derivative_name(of, name)]] = join_names(said, 3)
    given = tuple(idents[leaf.name] for leaf in leaves)

    def lines(tape: Tape, outputs: list[str], aliases: Iterable[str]) -> Iterator[Line]:
        found = list(_lines(tape, names, outputs, notes, {n: idents[n] for n in aliases}))
        own = {line.name for line in _lines(tape, names, [of], {}, {})}
        last = max((k for k, line in enumerate(found) if line.name in own), default=-1)
        for k, line in enumerate(found):
            begins = k == last + 1 and {x.name for x in found[:k]} <= own
            yield replace(line, begins=begins)

    def routine(outputs: list[str], more: Iterable[str], aliases: Iterable[str]) -> Routine:
        results = tuple(idents[name] for name in outputs)
        return Routine((*given, *more), tuple(lines(tape, outputs, aliases)), results)

    value = routine([of], [], [])
    if program.method == "finite-difference":
        return Exported(graph, program, of, leaves, idents, known, value, value, {})
    reads = [read.output for one in program.passes for read in one.reads]
    own_seeds = {name: idents[seed] for name, seed in seeds.items()}
    fixed = len(tape.leaves)  # constants, such as bar_L = 1, are in no need
    every = {**tape.names, **tape.outputs}.items()
    aliases = [n for n, i in every if is_internal(n) and (needed[i] or i < fixed)]
    sweep = routine(list(dict.fromkeys(reads)) if seeds else reads, own_seeds.values(), aliases)
    return Exported(graph, program, of, leaves, idents, known, value, sweep, own_seeds)


def _operand(tape: Tape, names: list[str], index: int) -> Operand:
    return names[index] or tape.leaves[index].value


def _lines(
    tape: Tape,
    names: list[str],
    outputs: list[str],
    notes: Mapping[int | str, str],
    aliases: Mapping[str, str],
) -> Iterator[Line]:
    """The instructions that some outputs need, and behind each the other names of its value."""
    needed = reachable(tape, [tape.outputs[name] for name in outputs])
    first, (of, *_) = len(tape.leaves), tape.outputs.values()
    primal = reachable(tape, [of])
    last = max((i for i in range(first, tape.size) if needed[i] and primal[i]), default=first - 1)
    others, seen = dict[int, list[Line]](), set[str]()
    for name, ident in aliases.items():
        index = tape.names.get(name, tape.outputs.get(name, -1))
        if ident != names[index] and ident not in seen:
            seen.add(ident)
            own = (_operand(tape, names, index),)
            line = Line(ident, "copy", own, (), notes.get(name, ""))
            line = replace(line, alias=name not in outputs)
            others.setdefault(max(index, last), []).append(line)
    yield from others.get(first - 1, ())
    for index, (primitive, operands) in enumerate(tape.instructions, first):
        if needed[index]:
            ranks = tuple(len(tape.shapes[o]) for o in operands)
            given = tuple(_operand(tape, names, o) for o in operands)
            yield Line(names[index], primitive, given, ranks, notes.get(index, ""))
        yield from others.get(index, ())


def _notes(program: DerivativeProgram, names: list[str]) -> dict[int | str, str]:
    """Which edge each product and each sum of a sweep belongs to; of second names by name."""
    tape, found = program.tape, dict[int | str, list[str]]()
    vertex, reverse = _vertices(tape, names), program.method == "reverse"
    primal = reachable(tape, [tape.outputs[name] for name in program.of])

    def said(key: int | str, edge: str) -> None:
        if edge not in found.setdefault(key, []):
            found[key].append(edge)

    totals: dict[int, int] = {}  # what flows out of each value, as far as it is known
    for tail, head, partial, product, total in tape.shares:
        source, target = (head, tail) if reverse else (tail, head)
        ends = vertex.get(tail, names[tail]), vertex.get(head, names[head])
        edge = f"inside {ends[1]}" if ends[0] == ends[1] else f"{ends[0]} -> {ends[1]}"
        handed = totals.get(source) == product or primal[product] or not names[product]
        if not handed:
            said(product, edge)
        elif total == product:  # the partial is 1, or the adjoint: nothing is computed
            said(f"{'bar' if reverse else 'dot'}.{tape.labels.get(target)}", edge)
        if total != product:
            said(total, f"plus {edge}")
        if not primal[partial] and names[partial] and partial != product:
            said(partial, edge if ends[0] == ends[1] else f"slope of {edge}")
        totals[target] = total
    return {key: ", ".join(edges) for key, edges in found.items()}


def _vertices(tape: Tape, names: list[str]) -> dict[int, str]:
    """For each value without a name the one vertex in whose expression it stands."""
    found: dict[int, str] = {}
    named = {index for name, index in tape.names.items() if not is_internal(name)}
    users: dict[int, set[str]] = {}
    for index in range(tape.size - 1, len(tape.leaves) - 1, -1):
        homes = {names[index]} if index in named else users.get(index, set())
        if index not in named and len(homes) == 1:
            (found[index],) = homes
        for operand in tape.instructions[index - len(tape.leaves)].operands:
            users.setdefault(operand, set()).update(homes)
    return found
