"""The expression graph: which variable depends on which, and which leads to which.

Vertices are the variables (names beginning with ``x``, names on a left-hand side, and names
declared ``input``); every other name is a learnable parameter. An edge runs from a variable to
each variable whose expression uses it.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.errors import (
    CycleError,
    DefinitionError,
    MissingValueError,
    Source,
    SourceError,
    Span,
    UsageError,
    did_you_mean,
)
from cgprimer.language.parser import collector_paused, parse_program
from cgprimer.language.syntax import (
    Declaration,
    Definition,
    Expression,
    Name,
    Number,
    Program,
    fold,
    leaves,
)
from cgprimer.language.unparse import number_text, unparse
from cgprimer.primitives import primitive

if TYPE_CHECKING:
    import networkx
    import sympy

Value = Any  # a float or an ndarray of samples


@dataclass(frozen=True, eq=False, repr=False)
class ExpressionGraph:
    """A directed acyclic graph of expressions. Made by :func:`parse` and :func:`load`.

    Attributes:
        program: the statements that it was built from, and their source.
        variables: every vertex, in topological order, ties by first appearance in the text.
        inputs: variables that nothing defines.
        outputs: variables that lead to nothing, or those that ``output`` names.
        parameters: learnable parameters, by first appearance in the text.
        values: values given in declarations.
        definitions: the expression of every variable that has one.
        depends_on: for each variable the variables that its expression uses.
        leads_to: for each variable the variables whose expressions use it.
        appearances: where each name first appears: start and end offset in the source.

    Both dictionaries list vertices in the order of ``variables`` and leave out empty lists.

    >>> graph = parse("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")
    >>> graph.depends_on
    {'xx': ['xa'], 'xy': ['xa', 'xx'], 'xz': ['xx', 'xy'], 'xw': ['xx', 'xz']}
    >>> graph.leads_to
    {'xa': ['xx', 'xy'], 'xx': ['xy', 'xz', 'xw'], 'xy': ['xz'], 'xz': ['xw']}
    """

    program: Program
    variables: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    values: dict[str, float]
    definitions: dict[str, Expression]
    depends_on: dict[str, list[str]]
    leads_to: dict[str, list[str]]
    appearances: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def source(self) -> Source:
        """The text that it was parsed from."""
        return self.program.source

    def __repr__(self) -> str:
        return (
            f"<ExpressionGraph {self.source.name}: {len(self.inputs)} inputs,"
            f" {len(self.definitions)} expressions, {len(self.parameters)} parameters>"
        )

    def __str__(self) -> str:
        """Text that parses to the same graph: the statements in their order, names in theirs."""
        lines: list[str] = []
        role = ""
        for statement in self.program.statements:
            if isinstance(statement, Definition):
                lines.append(f"{statement.name} = {unparse(statement.expression)}")
                role = ""
                continue
            name = statement.name
            text = name if statement.value is None else f"{name} = {number_text(statement.value)}"
            if statement.role == role:
                lines[-1] += f", {text}"
            else:
                lines.append(f"{statement.role} {text}")
            role = statement.role
        return "\n".join(lines)

    def expression(self, name: str) -> str:
        """The right-hand side that defines a variable, as text.

        >>> parse("xw = (cd*xx) + xz**3").expression("xw")
        'cd*xx + xz^3'
        """
        if name not in self.definitions:
            raise UsageError(f"nothing defines {name!r}", hint=did_you_mean(name, self.definitions))
        return unparse(self.definitions[name])

    @cached_property
    def parameters_of(self) -> dict[str, list[str]]:
        """For each variable the parameters that stand in its expression, in parameter order."""
        rank = {name: i for i, name in enumerate(self.parameters)}
        found = {}
        for name, expression in self.definitions.items():
            used = {n.name for n in leaves(expression) if isinstance(n, Name) and n.name in rank}
            if used:
                found[name] = sorted(used, key=rank.__getitem__)
        return found

    def only_output(self) -> str:
        """The output, where there is just one.

        Raises:
            UsageError: there are several (the message lists them) or none.
        """
        if len(self.outputs) != 1:
            what = f"several outputs: {', '.join(self.outputs)}" if self.outputs else "no output"
            raise UsageError(f"the graph has {what}", hint="say which one with of=... (--of NAME)")
        return self.outputs[0]

    def point(
        self, at: Mapping[str, Value] | None = None, *, needed: Iterable[str] | None = None
    ) -> dict[str, Value]:
        """Values of all inputs and parameters: those of ``at``, else the declared ones.

        Args:
            at: names to numbers or arrays; arrays must broadcast together.
            needed: names that must have a value; all inputs and parameters unless given.

        Raises:
            MissingValueError: a needed name has no value.
            UsageError: ``at`` has a name that is neither input nor parameter, or a value that is
                no real number, or arrays that do not broadcast.
        """
        free = {*self.inputs, *self.parameters}
        given: dict[str, Value] = dict(self.values)
        for name, value in (at or {}).items():
            if name not in free:
                if name in self.definitions:
                    raise UsageError(
                        f"{name!r} is computed by the graph; values are given to inputs and parameters"
                    )
                raise UsageError(f"no input or parameter is called {name!r}",
                                 hint=did_you_mean(name, free))  # fmt: skip
            given[name] = _real(name, value)
        wanted = tuple(needed) if needed is not None else (*self.inputs, *self.parameters)
        missing = [name for name in wanted if name in free and name not in given]
        if missing:
            unused = [n for n in self.values if n not in self._used]
            close = [f"{n!r} has a value but stands in no expression" for n in unused]
            raise MissingValueError(
                f"no value for {', '.join(missing)}",
                hint="; ".join(close)
                or f"give one: at={{{missing[0]!r}: 0.5}}, --at {missing[0]}=0.5, or in the text:"
                f" {'input' if missing[0] in self.inputs else 'parameter'} {missing[0]} = 0.5",
            )
        try:
            np.broadcast_shapes(*(np.shape(v) for v in given.values()))
        except ValueError:
            shapes = ", ".join(f"{n} {np.shape(v)}" for n, v in given.items() if np.ndim(v))
            raise UsageError(f"the arrays do not broadcast together: {shapes}") from None
        return given

    @cached_property
    def _used(self) -> set[str]:
        return {n.name for e in self.definitions.values() for n in leaves(e) if isinstance(n, Name)}

    def evaluate(self, at: Mapping[str, Value] | None = None) -> dict[str, Value]:
        """The value of every variable.

        This walks the syntax trees and calls the table's numpy functions, with no tape and no
        engine between: the reference that all engines are compared with.

        Args:
            at: names of inputs and parameters to numbers or arrays (shape: the samples).

        Returns:
            Floats if every value is a number, else arrays of the common shape. Outside a
            function's domain a value is nan, at a pole it is infinite; nothing raises.

        >>> graph = parse("input xa = 0.5; xx = xa^2; xw = 3*xx")
        >>> graph.evaluate()
        {'xa': 0.5, 'xx': 0.25, 'xw': 0.75}
        >>> graph.evaluate({"xa": [1.0, 2.0]})["xw"]
        array([ 3., 12.])
        """
        values = self.point(at)
        shape = np.broadcast_shapes(*(np.shape(v) for v in values.values()))
        known: dict[str, Any] = {n: np.asarray(v, dtype=float) for n, v in values.items()}
        with np.errstate(all="ignore"):
            for name in self.variables:
                if name in self.definitions:
                    known[name] = fold(
                        self.definitions[name],
                        lambda leaf: known[leaf.name] if isinstance(leaf, Name) else np.float64(leaf.value),
                        lambda row, arguments: primitive(row).numpy(*arguments),
                    )
        if not shape:
            return {name: float(known[name]) for name in self.variables}
        return {name: np.array(np.broadcast_to(known[name], shape)) for name in self.variables}

    def to_networkx(self) -> networkx.DiGraph:
        """The graph as networkx sees it.

        Nodes carry ``role`` (input, inner or output), ``expression`` and ``parameters``.

        >>> sorted(parse("xb = xa^2; xc = xa*xb").to_networkx().edges)
        [('xa', 'xb'), ('xa', 'xc'), ('xb', 'xc')]
        """
        import networkx

        graph = networkx.DiGraph()
        for name in self.variables:
            graph.add_node(
                name,
                role=self.role(name),
                expression=self.expression(name) if name in self.definitions else None,
                parameters=tuple(self.parameters_of.get(name, ())),
            )
        graph.add_edges_from((u, v) for u, heads in self.leads_to.items() for v in heads)
        return graph

    def role(self, name: str) -> str:
        """``input``, ``inner``, ``output`` or ``parameter``."""
        if name in self._input_set:
            return "input"
        if name in self._output_set:
            return "output"
        return "inner" if name in self.definitions else "parameter"

    @cached_property
    def _input_set(self) -> frozenset[str]:
        return frozenset(self.inputs)

    @cached_property
    def _output_set(self) -> frozenset[str]:
        return frozenset(self.outputs)

    def to_sympy(self) -> dict[str, sympy.Expr]:
        """Every defined variable as a sympy expression in the symbols of its own right-hand side.

        >>> parse("xx = xa^2; xw = 3*xx").to_sympy()
        {'xx': xa**2, 'xw': 3*xx}
        """
        import sympy

        from cgprimer.primitives import symbolic_call

        def leaf(node: Name | Number) -> Any:
            if isinstance(node, Name):
                return sympy.Symbol(node.name, real=True)
            return sympy.Rational(repr(node.value)) if node.value % 1 else sympy.Integer(int(node.value))

        return {
            name: fold(e, leaf, lambda row, args: symbolic_call(primitive(row), sympy, args))
            for name, e in self.definitions.items()
        }


def parse(expressions: str | Iterable[str], *, name: str = "<expressions>") -> ExpressionGraph:
    """An expression graph from text, or from a list of texts.

    Args:
        expressions: statements separated by new lines or ``;``, or a list of such texts.
        name: what messages call the text.

    Raises:
        SourceError: the text is not a graph; the message has line, column and caret.
        UsageError: ``expressions`` is neither text nor a list of texts.

    >>> parse(["xy = ab*xx", "xx = xa^2"]).variables
    ('xa', 'xx', 'xy')
    """
    if not isinstance(expressions, str):
        parts = list(expressions) if isinstance(expressions, Iterable) else [expressions]
        wrong = next((p for p in parts if not isinstance(p, str)), None)
        if wrong is not None:
            raise UsageError(f"expressions are text or a list of texts, not {type(wrong).__name__}")
        expressions = "\n".join(parts)
    with collector_paused():
        return _build(parse_program(expressions, source_name=name))


def load(path: str | Path) -> ExpressionGraph:
    """An expression graph from a file in UTF-8; ``-`` is standard input.

    Raises:
        UsageError: the file cannot be read, or is not text.
        SourceError: its text is not a graph.
    """
    try:
        if str(path) == "-":
            return parse(sys.stdin.read(), name="<stdin>")
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})") from None
    return parse(text, name=str(path))


def _real(name: str, value: Value) -> Value:
    """A float, or an array of doubles."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        raise UsageError(f"the value of {name!r} must be a real number or an array of them") from None
    return array.astype(float) if array.ndim else float(array)


# --- from statements to a graph ----------------------------------------------------------------


def _build(program: Program) -> ExpressionGraph:
    source = program.source
    first: dict[str, tuple[int, int]] = {}
    definitions: dict[str, Definition] = {}
    declarations: dict[str, Declaration] = {}
    roles: dict[str, str] = {}
    uses: dict[str, list[str]] = {}
    output_names: list[str] = []

    def see(name: str, start: int, end: int) -> None:
        if name not in first:
            first[name] = (start, end)

    for statement in program.statements:
        see(statement.name, statement.start, statement.end)
        if isinstance(statement, Declaration):
            _declare(source, statement, declarations)
            if statement.role == "output":
                output_names.append(statement.name)
            else:
                roles[statement.name] = statement.role
            continue
        earlier = definitions.setdefault(statement.name, statement)
        if earlier is not statement:
            raise DefinitionError(
                f"{statement.name!r} is defined twice", _span(source, statement),
                related=[("it was first defined here", _span(source, earlier))],
                hint="give the second one a name of its own",
            )  # fmt: skip
        used = uses[statement.name] = []
        for leaf in leaves(statement.expression):
            if isinstance(leaf, Name):
                see(leaf.name, leaf.start, leaf.end)
                used.append(leaf.name)

    for name, role in roles.items():
        if name in definitions:
            raise DefinitionError(
                f"{name!r} is declared {role!r} but an expression defines it",
                _span(source, definitions[name]),
                related=[("it was declared here", _span(source, declarations[name]))],
            )
    for name in output_names:
        if name not in definitions:
            raise DefinitionError(
                f"{name!r} is declared an output, but nothing defines it",
                _span(source, declarations[name]), hint=did_you_mean(name, definitions),
            )  # fmt: skip

    is_variable = {
        name: name in definitions or roles.get(name, "input" if name[0] == "x" else "") == "input"
        for name in first
    }
    order = _topological_order(source, [n for n in first if is_variable[n]], uses, is_variable, first)
    rank = {name: i for i, name in enumerate(order)}
    depends_on: dict[str, list[str]] = {}
    leads_to: dict[str, list[str]] = {}
    for name in order:
        tails = sorted({u for u in uses.get(name, ()) if is_variable[u]}, key=rank.__getitem__)
        if tails:
            depends_on[name] = tails
        for tail in tails:
            leads_to.setdefault(tail, []).append(name)
    chosen = set(output_names)
    outputs = [n for n in order if n in chosen] or [
        n for n in order if n in definitions and n not in leads_to
    ]
    return ExpressionGraph(
        program=program,
        variables=tuple(order),
        inputs=tuple(n for n in order if n not in definitions),
        outputs=tuple(outputs),
        parameters=tuple(n for n in first if not is_variable[n]),
        values={n: d.value for n, d in declarations.items() if d.value is not None},
        definitions={n: definitions[n].expression for n in order if n in definitions},
        depends_on=depends_on,
        leads_to={n: leads_to[n] for n in order if n in leads_to},
        appearances=first,
    )


def _span(source: Source, statement: Definition | Declaration) -> Span:
    return Span(source, statement.start, statement.end)


def _declare(
    source: Source, statement: Declaration, declarations: dict[str, Declaration]
) -> None:
    earlier = declarations.setdefault(statement.name, statement)
    if earlier is not statement:
        raise DefinitionError(
            f"{statement.name!r} is declared twice", _span(source, statement),
            related=[("it was first declared here", _span(source, earlier))],
        )  # fmt: skip
    if statement.role == "output" and statement.value is not None:
        raise DefinitionError(
            f"an output is computed, so {statement.name!r} cannot be given a value",
            _span(source, statement), hint=f"write: output {statement.name}",
        )  # fmt: skip


def _topological_order(
    source: Source,
    names: list[str],
    uses: Mapping[str, list[str]],
    is_variable: Mapping[str, bool],
    first: Mapping[str, tuple[int, int]],
) -> list[str]:
    """Kahn's algorithm with a heap: of the vertices that are ready, the first in the text.

    Source: Kahn 1962, "Topological sorting of large networks".
    """
    rank = {name: i for i, name in enumerate(names)}
    waiting = [0] * len(names)
    heads: list[list[int]] = [[] for _ in names]
    for name, used in uses.items():
        tails = {u for u in used if is_variable[u]}
        waiting[rank[name]] = len(tails)
        for tail in tails:
            heads[rank[tail]].append(rank[name])
    ready = [i for i, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(names[i])
        for j in heads[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, j)
    if len(order) < len(names):
        raise _cycle(source, set(names) - set(order), uses, first, rank)
    return order


def _cycle(
    source: Source,
    stuck: set[str],
    uses: Mapping[str, list[str]],
    first: Mapping[str, tuple[int, int]],
    rank: Mapping[str, int],
) -> SourceError:
    """Follow what each stuck variable waits for until one comes up again."""
    walk: list[str] = [min(stuck, key=rank.__getitem__)]
    seen = {walk[0]: 0}
    while True:
        following = next(u for u in uses[walk[-1]] if u in stuck)
        if following in seen:
            break
        seen[following] = len(walk)
        walk.append(following)
    # The walk went from users to what they use; edges run the other way.
    path = [*walk[seen[following] :], following][::-1]
    start = min(range(len(path) - 1), key=lambda i: rank[path[i]])
    path = [*path[start:-1], *path[: start + 1]]
    return CycleError(
        f"these definitions run in a circle: {' -> '.join(path)}",
        Span(source, *first[path[0]]), path=tuple(path),
        hint="a graph of expressions has no circles: one of these must not use the other",
    )  # fmt: skip
