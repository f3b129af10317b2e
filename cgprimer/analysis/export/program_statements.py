"""Conversion of a derivative program to functions that can be written in any language.

This module differentiates nothing. The contributions of the program tell the edge of each product,
and its outputs tell which values are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from cgprimer.analysis.export.identifiers import assign_identifiers
from cgprimer.core.methods.derivative_program import derivative_name
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.core.tape.tape_printing import assign_printed_names
from cgprimer.errors import join_names
from cgprimer.expressions import ExpressionGraph, Shape
from cgprimer.support.value_names import is_internal
from cgprimer.tapes import DerivativeProgram, Leaf, Tape, labels, reachable

_METHOD_NAMES = {
    "finite-difference": "finite differences",
    "forward": "forward mode",
    "path-sum": "sum over paths",
    "reverse": "reverse mode",
    "symbolic": "symbolic differentiation",
}
Operand = str | float  #: an identifier or a number


@dataclass(frozen=True)
class Line:
    """One instruction of an exported function, written with identifiers of the target language.

    Attributes:
        name: the identifier of the result.
        primitive: the operation; ``copy`` for an alias.
        operands: identifiers and numbers.
        ranks: the number of axes of each operand, for one sample.
        note: the edges that the instruction belongs to; empty for values of the graph.
        begins: True for the first instruction of the derivative.
        alias: True if the instruction only gives a second name to a value.
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
    """An exported function: arguments, instructions and results.

    Attributes:
        arguments: its arguments.
        lines: its instructions.
        results: the identifiers of the returned values.
    """

    arguments: tuple[str, ...]
    lines: tuple[Line, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Exported:
    """A graph and its derivative program, written with identifiers of the target language.

    Attributes:
        graph: the exported graph, including its loss.
        program: the derivative program.
        of: the differentiated variable, a scalar.
        leaves: the arguments of the functions in their order, without seeds.
        idents: the identifier of each name of the program's tape.
        shown: the identifier of each printed name, such as ``v1``.
        value: the function that computes ``of``.
        sweep: the function that computes the derivatives, or the derivative along one direction.
        seeds: the seed argument for each name, in forward mode.
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
        """The names with respect to which the exported variable is differentiated."""
        return self.program.wrt

    @property
    def method(self) -> str:
        """The display name of the method, such as ``reverse mode``."""
        return _METHOD_NAMES.get(self.program.method, self.program.method)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The argument names of the exported functions ``value`` and ``gradient``."""
        return self.value.arguments

    @property
    def differences(self) -> bool:
        """True if the derivatives are computed by finite differences."""
        return self.program.method == "finite-difference"

    def describe_tangent(self) -> str:
        """Return the docstring of the exported function ``tangent``."""
        return f"Return the derivative of {self.of} along the direction in the dot_ arguments."

    def quotients(self) -> Iterator[tuple[str, str, str]]:
        """Yield each variable name, with code for its step size and its difference quotient."""
        rule = self.program.step_rule
        assert rule is not None
        one_sided = any(run.shift is None for run in self.program.passes)
        for name in self.wrt:
            identifier = self.idents[name]
            up, down = (
                ", ".join(
                    [f"{a} {sign} step_size" if a == identifier else a for a in self.arguments]
                )
                for sign in "+-"
            )
            start = ", ".join(self.arguments)
            base, width = (start, "step_size") if one_sided else (down, "(2.0 * step_size)")
            size = repr(rule.size or rule.relative_step(52))
            size += "" if rule.size else f" * compute_scale({identifier})"
            yield name, size, f"(value({up}) - value({base})) / {width}"

    def shape(self, name: str) -> Shape:
        """Return the shape of a variable for one sample; ``()`` for a scalar."""
        return self.program.shapes.get(name, ())


def export_program(
    graph: ExpressionGraph,
    program: DerivativeProgram,
    *,
    ascii_only: bool,
    is_reserved: Callable[[str], bool],
) -> Exported:
    """Convert the derivative program of a scalar to functions in a target language.

    Args:
        graph: the graph.
        program: the derivative program of the graph.
        ascii_only: allow only ASCII letters in identifiers.
        is_reserved: tells whether the target language or the file reserves a word.
    """
    tape, (of,) = program.tape, program.of
    printed_names = assign_printed_names(tape)
    texts = _name_values(tape, of, printed_names)
    # The names of the graph come first, so that they stay unchanged if possible.
    graph_names = [name for name in tape.names if not is_internal(name)]
    all_names = filter(None, (*graph_names, *program.wrt, *texts, *printed_names.values()))
    identifier_of = assign_identifiers(
        dict.fromkeys(all_names), ascii_only=ascii_only, is_reserved=is_reserved
    )
    idents = {
        name: identifier_of[printed_names.get(name, name)]
        for name in (*printed_names, *program.wrt)
    }
    seeds = {
        read.wrt: seed
        for run in program.passes
        for seed, value in run.seeds.items()
        if value
        for read in run.reads
    }
    needed = reachable(tape, tape.outputs.values())
    leaves = tuple(
        leaf
        for leaf, is_needed in zip(tape.leaves, needed, strict=False)
        if is_needed and leaf.kind != "constant" and leaf.name not in seeds.values()
    )
    names = [identifier_of[text] if text else "" for text in texts]
    arguments = tuple(idents[leaf.name] for leaf in leaves)
    builder = _RoutineBuilder(program, names, idents, arguments)
    value = builder.build([of], [], [])
    if program.method == "finite-difference":
        return Exported(graph, program, of, leaves, idents, identifier_of, value, value, {})
    reads = [read.output for run in program.passes for read in run.reads]
    seed_arguments = {name: idents[seed] for name, seed in seeds.items()}
    n_leaves = len(tape.leaves)  # constants, such as bar_L = 1, need not be reachable
    all_indices = {**tape.names, **tape.outputs}.items()
    aliases = [n for n, i in all_indices if is_internal(n) and (needed[i] or i < n_leaves)]
    outputs = list(dict.fromkeys(reads)) if seeds else reads
    sweep = builder.build(outputs, seed_arguments.values(), aliases)
    return Exported(graph, program, of, leaves, idents, identifier_of, value, sweep, seed_arguments)


def _name_values(tape: Tape, of: str, printed_names: Mapping[str, str]) -> list[str]:
    """Return a name for each tape value; graph values never have adjoint or tangent names."""
    texts = labels(tape)
    in_graph = reachable(tape, [tape.outputs[of]])
    used = {*texts, *printed_names.values()}
    free = (name for name in map("v{}".format, count(1)) if name not in used)
    for index in range(len(tape.leaves), tape.size):  # a value can also be a partial derivative
        if in_graph[index] and is_internal(tape.labels.get(index, "")):
            texts[index] = next(free)
    return texts


class _RoutineBuilder:
    """Builder of exported functions from the instructions of a derivative program."""

    def __init__(
        self,
        program: DerivativeProgram,
        names: list[str],
        idents: Mapping[str, str],
        arguments: tuple[str, ...],
    ) -> None:
        """Create a builder.

        Args:
            program: the derivative program.
            names: the identifier of each value; empty for constants.
            idents: the identifier of each name of the tape.
            arguments: the arguments of all functions.
        """
        self.tape, (self.of,) = program.tape, program.of
        self.names, self.idents, self.arguments = names, idents, arguments
        self.notes = _describe_edges(program, names)
        for (_, name), paths in (program.paths or {}).items():
            texts = ["-".join(path).replace("-", " -> ") for path in paths]
            output = self.tape.outputs[derivative_name(self.of, name)]
            self.notes[output] = self.notes[derivative_name(self.of, name)] = join_names(texts, 3)

    def build(
        self, outputs: list[str], further_arguments: Iterable[str], aliases: Iterable[str]
    ) -> Routine:
        """Build the function that computes the outputs with the given names.

        Args:
            outputs: the names of the outputs.
            further_arguments: arguments in addition to the common ones.
            aliases: names of the tape that are assigned as second names of values.
        """
        lines = list(self._iterate_lines(outputs, {name: self.idents[name] for name in aliases}))
        graph_names = {line.name for line in self._iterate_lines([self.of], {})}
        last = max((k for k, line in enumerate(lines) if line.name in graph_names), default=-1)
        for k, line in enumerate(lines):
            begins = k == last + 1 and {earlier.name for earlier in lines[:k]} <= graph_names
            lines[k] = replace(line, begins=begins)
        results = tuple(self.idents[name] for name in outputs)
        return Routine((*self.arguments, *further_arguments), tuple(lines), results)

    def _iterate_lines(self, outputs: list[str], aliases: Mapping[str, str]) -> Iterator[Line]:
        """Yield the instructions that compute the given outputs, each followed by its aliases."""
        tape = self.tape
        needed = reachable(tape, [tape.outputs[name] for name in outputs])
        first, (of, *_) = len(tape.leaves), tape.outputs.values()
        in_graph = reachable(tape, [of])
        indices = (i for i in range(first, tape.size) if needed[i] and in_graph[i])
        last = max(indices, default=first - 1)
        alias_lines, assigned = dict[int, list[Line]](), set[str]()
        for name, identifier in aliases.items():
            index = tape.names.get(name, tape.outputs.get(name, -1))
            if identifier != self.names[index] and identifier not in assigned:
                assigned.add(identifier)
                operands = (self._get_operand(index),)
                line = Line(identifier, "copy", operands, (), self.notes.get(name, ""))
                line = replace(line, alias=name not in outputs)
                alias_lines.setdefault(max(index, last), []).append(line)
        yield from alias_lines.get(first - 1, ())
        for index, (primitive, indices_of_operands) in enumerate(tape.instructions, first):
            if needed[index]:
                ranks = tuple(len(tape.shapes[o]) for o in indices_of_operands)
                operand_names = tuple(map(self._get_operand, indices_of_operands))
                # A value of the graph can also be a derivative: its alias has the comment.
                note = "" if in_graph[index] else self.notes.get(index, "")
                yield Line(self.names[index], primitive, operand_names, ranks, note)
            yield from alias_lines.get(index, ())

    def _get_operand(self, index: int) -> Operand:
        """Return the identifier of a tape value, or the number for a constant."""
        return self.names[index] or self.tape.leaves[index].value


def _describe_edges(program: DerivativeProgram, names: list[str]) -> dict[int | str, str]:
    """Describe the graph edges that each product and sum of a derivative sweep belongs to."""
    tape, edges_of = program.tape, dict[int | str, list[str]]()
    vertex, is_reverse = _find_vertices(tape, names), program.method == "reverse"
    primal = reachable(tape, [tape.outputs[name] for name in program.of])

    def add_edge(key: int | str, edge: str) -> None:
        """Mention an edge in the comment on a tape value, unless it is already mentioned."""
        if edge not in edges_of.setdefault(key, []):
            edges_of[key].append(edge)

    totals: dict[int, int] = {}  # the current adjoint or tangent of each value
    for tail, head, partial, product, total in tape.shares:
        source, target = (head, tail) if is_reverse else (tail, head)
        ends = vertex.get(tail, names[tail]), vertex.get(head, names[head])
        is_inside = ends[0] == ends[1]  # an operation within the expression of one vertex
        edge = f"inside {ends[1]}" if is_inside else f"{ends[0]} -> {ends[1]}"
        is_passed_on = totals.get(source) == product or primal[product] or not names[product]
        if not is_passed_on:
            add_edge(product, edge)
        elif total == product:  # the partial is 1, or the adjoint: nothing is computed
            add_edge(f"{'bar' if is_reverse else 'dot'}.{tape.labels.get(target)}", edge)
        if total != product:
            add_edge(total, f"sum {edge}" if is_inside else f"add {edge}")
        if not primal[partial] and names[partial] and partial != product:
            add_edge(partial, edge if is_inside else f"local derivative of {edge}")
        totals[target] = total
    return {key: ", ".join(edges) for key, edges in edges_of.items()}


def _find_vertices(tape: Tape, names: list[str]) -> dict[int, str]:
    """Map each tape value that occurs in the expression of only one vertex to that vertex."""
    vertices: dict[int, str] = {}
    variables = {index for name, index in tape.names.items() if not is_internal(name)}
    users: dict[int, set[str]] = {}
    for index in range(tape.size - 1, len(tape.leaves) - 1, -1):
        owners = {names[index]} if index in variables else users.get(index, set())
        if index not in variables and len(owners) == 1:
            (vertices[index],) = owners
        for operand in tape.instructions[index - len(tape.leaves)].operands:
            users.setdefault(operand, set()).update(owners)
    return vertices
