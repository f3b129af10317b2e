"""From text to a graph: roles, edges and order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from cgprimer.core.graph.expression_graph import ExpressionGraph, FrozenDict, FrozenList
from cgprimer.core.language.parser import parse_program
from cgprimer.core.language.syntax import Declaration, Definition, Program
from cgprimer.core.language.tokens import spans, tokenize
from cgprimer.core.primitives.registry import FUNCTIONS
from cgprimer.errors import CycleError, DefinitionError, Source, name_hint
from cgprimer.garbage_collection import collector_paused

Edges = Mapping[str, list[str]]
_SHOWN = 12  # vertices of a circle


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
        expressions = "\n".join(expressions)
    with collector_paused():
        return graph_of(parse_program(expressions, FUNCTIONS, name))


def graph_of(program: Program) -> ExpressionGraph:
    """The graph of statements."""
    names: dict[str, None] = {}  # by first appearance
    definitions: dict[str, Definition] = {}
    declarations: dict[str, Declaration] = {}
    for statement in program.statements:
        name = statement.name
        names[name] = None
        if isinstance(statement, Definition):
            first: Definition | Declaration = definitions.setdefault(name, statement)
            done, hint = "defined", "give the second one a name of its own"
            names.update(dict.fromkeys(statement.names))
        else:
            first = declarations.setdefault(name, statement)
            done, hint = "declared", ""
        if first is not statement:
            earlier = [(f"it was first {done} here", program.place(first))]
            said = f"{name!r} is {done} twice"
            raise DefinitionError(said, program.place(statement), hint=hint, related=earlier)
    outputs = {name: d for name, d in declarations.items() if d.role == "output"}
    parameters = {
        name: None
        for name in names
        if name not in definitions
        and (declarations[name].role == "parameter" if name in declarations else name[0] != "x")
    }
    for name, declared in declarations.items():
        if name not in outputs and name in definitions:
            said = f"{name!r} is declared {declared.role!r} but an expression defines it"
            earlier = [("it was declared here", program.place(declared))]
            raise DefinitionError(said, program.place(definitions[name]), related=earlier)
    for name, output in outputs.items():
        if output.value is not None:
            said = f"an output is computed, so {name!r} cannot be given a value"
            raise DefinitionError(said, program.place(output), hint=f"write: output {name}")
        if output.shape:
            said = f"an output is computed, and so is the shape of {name!r}"
            raise DefinitionError(said, program.place(output), hint=f"write: output {name}")
        if name not in definitions:
            said = f"{name!r} is declared an output, but nothing defines it"
            hint = name_hint(name, definitions)
            raise DefinitionError(said, program.place(output), hint=hint)

    used = {name: definition.names for name, definition in definitions.items()}
    depends_on = {n: FrozenList([m for m in own if m not in parameters]) for n, own in used.items()}
    leads_to = {name: FrozenList[str]() for name in names if name not in parameters}
    for name, tails in depends_on.items():
        for tail in tails:
            list.append(leads_to[tail], name)
    order = _topological_order(depends_on, leads_to)
    if len(order) < len(leads_to):
        raise _cycle(program.source, depends_on, leads_to.keys() - set(order))
    place = {name: i for i, name in enumerate(order)}
    for edges in (*depends_on.values(), *leads_to.values()):
        if len(edges) > 1:
            list.sort(edges, key=place.__getitem__)
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


def _cycle(source: Source, depends_on: Edges, stuck: set[str]) -> CycleError:
    """The definitions run in a circle; ``stuck`` are the vertices that no order has a place for."""
    tokens = tokenize(source.text)
    walk = [next(token for token in tokens if token in stuck)]
    seen = {walk[0]: 0}
    while (following := next(u for u in depends_on[walk[-1]] if u in stuck)) not in seen:
        seen[following] = len(walk)
        walk.append(following)
    # The walk went from users to what they use; edges run the other way.
    circle = walk[seen[following] :][::-1]
    start = circle.index(next(t for t in tokens if seen.get(t, -1) >= seen[following]))
    path = (*circle[start:], *circle[: start + 1])
    shown = path if len(path) <= _SHOWN else (*path[: _SHOWN - 3], "...", *path[-2:])
    many = "" if shown is path else f" ({len(circle):,} of them)"
    return CycleError(
        f"these definitions run in a circle: {' -> '.join(shown)}{many}",
        spans(source)[tokens.index(path[0])],
        path=path,
        hint="a graph of expressions has no circles: one of these must not use the other",
    )


def _topological_order(depends_on: Edges, leads_to: Edges) -> list[str]:
    """Kahn's algorithm with a heap: of the vertices that are ready, the first in the text.

    ``leads_to`` has every vertex, in the order of the text. Vertices on a circle, and what needs
    them, are left out.

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
