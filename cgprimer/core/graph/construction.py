"""Build a graph from text: the roles of names, edges and the order of vertices."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from cgprimer.core.graph.expression_graph import ExpressionGraph, FrozenDict, FrozenList
from cgprimer.core.language.parser import parse_program
from cgprimer.core.language.syntax_tree import Declaration, Definition, Program
from cgprimer.core.language.tokens import locate_tokens, tokenize
from cgprimer.core.operations.primitive_registry import FUNCTIONS
from cgprimer.errors import CycleError, DefinitionError, Source, name_hint
from cgprimer.support.garbage_collection import pause_garbage_collection
from cgprimer.support.type_checks import check_type

Edges = Mapping[str, list[str]]
_MAX_SHOWN = 12  # vertices of a cycle that a message shows


def parse(expressions: str | Iterable[str], *, name: str = "<expressions>") -> ExpressionGraph:
    """Parse a string, or a list of strings, into an expression graph.

    Args:
        expressions: statements separated by line breaks or ``;``, or a list of such strings.
        name: name of the source in error messages.

    Raises:
        SourceError: the text does not define a graph; the message shows line, column and a caret.
        UsageError: ``expressions`` is neither a string nor a list of strings.

    >>> parse(["xy = ab*xx", "xx = xa^2"]).variables
    ('xa', 'xx', 'xy')
    """
    if not isinstance(expressions, str):
        check_type("expressions", expressions, Iterable, "a string or a list of strings")
        lines = list(expressions)
        if not all(isinstance(line, str) for line in lines):
            check_type("expressions", expressions, str, "a string or a list of strings")
        expressions = "\n".join(lines)
    with pause_garbage_collection():
        return build_graph(parse_program(expressions, FUNCTIONS, name))


def build_graph(program: Program) -> ExpressionGraph:
    """Build an expression graph from parsed statements.

    Raises:
        DefinitionError: a name is defined or declared twice, or its declaration is invalid.
        CycleError: variables are defined by each other.
    """
    definitions, declarations = _collect_statements(program)
    outputs = {name: d for name, d in declarations.items() if d.role == "output"}
    _check_declarations(program, definitions, declarations, outputs)
    names: dict[str, None] = {}  # by first appearance
    for statement in program.statements:
        names[statement.name] = None
        if isinstance(statement, Definition):
            names.update(dict.fromkeys(statement.names))
    parameters = {
        name: None
        for name in names
        if name not in definitions
        and (declarations[name].role == "parameter" if name in declarations else name[0] != "x")
    }
    depends_on = {
        name: FrozenList([tail for tail in definition.names if tail not in parameters])
        for name, definition in definitions.items()
    }
    leads_to = {name: FrozenList[str]() for name in names if name not in parameters}
    for name, tails in depends_on.items():
        for tail in tails:
            list.append(leads_to[tail], name)
    order = _sort_topologically(depends_on, leads_to)
    if len(order) < len(leads_to):
        raise _cycle_error(program.source, depends_on, leads_to.keys() - set(order))
    rank = {name: i for i, name in enumerate(order)}
    for edges in (*depends_on.values(), *leads_to.values()):
        if len(edges) > 1:
            list.sort(edges, key=rank.__getitem__)
    ends = outputs or {n for n in definitions if not leads_to[n]}
    return ExpressionGraph(
        program=program,
        variables=tuple(order),
        inputs=tuple(n for n in order if n not in definitions),
        outputs=tuple(n for n in order if n in ends),
        parameters=tuple(parameters),
        declared_values=FrozenDict(
            {n: d.value for n, d in declarations.items() if d.value is not None}
        ),
        definitions=FrozenDict({n: definitions[n].expression for n in order if n in definitions}),
        depends_on=FrozenDict({n: depends_on[n] for n in order if depends_on.get(n)}),
        leads_to=FrozenDict({n: leads_to[n] for n in order if leads_to[n]}),
        shapes=FrozenDict({n: d.shape for n, d in declarations.items() if d.shape}),
        domains=FrozenDict({n: d.domain for n, d in declarations.items() if d.domain is not None}),
    )


def _collect_statements(
    program: Program,
) -> tuple[dict[str, Definition], dict[str, Declaration]]:
    """Return the definitions and the declarations, keyed by name.

    Raises:
        DefinitionError: a name is defined or declared twice.
    """
    definitions: dict[str, Definition] = {}
    declarations: dict[str, Declaration] = {}
    for statement in program.statements:
        name = statement.name
        if isinstance(statement, Definition):
            first: Definition | Declaration = definitions.setdefault(name, statement)
            kind, hint = "defined", "rename the second variable"
        else:
            first = declarations.setdefault(name, statement)
            kind, hint = "declared", ""
        if first is not statement:
            earlier = [(f"first {kind} here", program.name_span(first))]
            message, span = f"{name!r} is {kind} twice", program.name_span(statement)
            raise DefinitionError(message, span, hint=hint, related=earlier)
    return definitions, declarations


def _check_declarations(
    program: Program,
    definitions: Mapping[str, Definition],
    declarations: Mapping[str, Declaration],
    outputs: Mapping[str, Declaration],
) -> None:
    """Raise DefinitionError for a declaration that contradicts the definitions."""
    for name, declared in declarations.items():
        if name not in outputs and name in definitions:
            message = f"{name!r} is declared as {declared.role!r} but defined by an expression"
            earlier = [("declared here", program.name_span(declared))]
            raise DefinitionError(message, program.name_span(definitions[name]), related=earlier)
    for name, output in outputs.items():
        hint = f"write: output {name}"
        if output.value is not None:
            message = f"cannot assign a value to the output {name!r}: outputs are computed"
        elif output.shape:
            message = f"cannot declare a shape for the output {name!r}: its shape is inferred"
        elif name not in definitions:
            message = f"the output {name!r} is not defined"
            hint = name_hint(name, definitions)
        else:
            continue
        raise DefinitionError(message, program.name_span(output), hint=hint)


def _cycle_error(source: Source, depends_on: Edges, unordered: set[str]) -> CycleError:
    """Return the error for cyclic definitions.

    Args:
        source: the source text.
        depends_on: for each variable the variables that its definition uses.
        unordered: the variables that are on a cycle or depend on one.
    """
    tokens = tokenize(source.text)
    walk = [next(token for token in tokens if token in unordered)]
    position = {walk[0]: 0}
    while (tail := next(u for u in depends_on[walk[-1]] if u in unordered)) not in position:
        position[tail] = len(walk)
        walk.append(tail)
    # The walk follows dependencies, against the direction of the edges.
    cycle = walk[position[tail] :][::-1]
    start = cycle.index(next(t for t in tokens if position.get(t, -1) >= position[tail]))
    path = (*cycle[start:], *cycle[: start + 1])
    shown = path if len(path) <= _MAX_SHOWN else (*path[: _MAX_SHOWN - 3], "...", *path[-2:])
    count = "" if shown is path else f" ({len(cycle):,} variables)"
    return CycleError(
        f"cyclic definition: {' -> '.join(shown)}{count}",
        locate_tokens(source)[tokens.index(path[0])],
        path=path,
        hint="change one of the definitions so that it does not use the next",
    )


def _sort_topologically(depends_on: Edges, leads_to: Edges) -> list[str]:
    """Sort the vertices topologically; ties are broken by the order of the text.

    This is Kahn's algorithm with a heap. The keys of ``leads_to`` are all vertices in the order of
    the text. Vertices that are on a cycle or depend on one are omitted.

    Source: Kahn 1962, "Topological sorting of large networks".
    """
    names = list(leads_to)
    rank = {name: i for i, name in enumerate(names)}
    waiting = {name: len(tails) for name, tails in depends_on.items()}
    ready = [i for i, name in enumerate(names) if not waiting.get(name)]  # sorted: a heap
    order: list[str] = []
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        for head in leads_to[name]:
            waiting[head] -= 1
            if not waiting[head]:
                heapq.heappush(ready, rank[head])
    return order
