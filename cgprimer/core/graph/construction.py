"""Build a graph from text: the roles of names, edges and the order of vertices."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from cgprimer.core.graph.expression_graph import ExpressionGraph, FrozenDict, FrozenList
from cgprimer.core.language.parser import parse_program
from cgprimer.core.language.syntax_tree import Declaration, Definition, Program
from cgprimer.core.operations.primitive_registry import FUNCTIONS
from cgprimer.support.garbage_collection import pause_garbage_collection
from cgprimer.support.type_checks import check_type

Edges = Mapping[str, list[str]]


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
    if declarations:
        from cgprimer.core.graph.definition_errors import check_declarations

        check_declarations(program, definitions, declarations, outputs)
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
        from cgprimer.core.graph.definition_errors import cycle_error

        raise cycle_error(program.source, depends_on, leads_to.keys() - set(order))
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
        first: Definition | Declaration
        if isinstance(statement, Definition):
            first = definitions.setdefault(statement.name, statement)
        else:
            first = declarations.setdefault(statement.name, statement)
        if first is not statement:
            from cgprimer.core.graph.definition_errors import repeated_name_error

            raise repeated_name_error(program, first, statement)
    return definitions, declarations


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
