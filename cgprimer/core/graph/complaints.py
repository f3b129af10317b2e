"""What is said where a text is no graph, or a point is none of it: loaded when that is so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cgprimer.core.language.syntax import Declaration, Definition
from cgprimer.core.language.tokens import spans, tokenize
from cgprimer.errors import (
    CycleError,
    DefinitionError,
    MissingValueError,
    Source,
    SourceError,
    UsageError,
    name_hint,
)

if TYPE_CHECKING:
    from cgprimer.core.graph.expression_graph import ExpressionGraph

_CONSTANTS = {"e": "exp(1)", "pi": "3.141592653589793", "π": "3.141592653589793"}

Statement = Definition | Declaration
Earlier = tuple[str, Statement] | None  # what to say of it, and where it stands


def _at(
    source: Source, statement: Statement, said: str, hint: str = "", earlier: Earlier = None
) -> DefinitionError:
    places = spans(source)
    related = [(earlier[0], places[earlier[1].at])] if earlier else []
    return DefinitionError(said, places[statement.at], related=related, hint=hint)


def twice(source: Source, statement: Statement, earlier: Statement) -> DefinitionError:
    """A name is defined or declared a second time."""
    done, hint = "declared", ""
    if isinstance(statement, Definition):
        done, hint = "defined", "give the second one a name of its own"
    said = f"{statement.name!r} is {done} twice"
    return _at(source, statement, said, hint, (f"it was first {done} here", earlier))


def output_with_a_value(source: Source, output: Declaration) -> DefinitionError:
    """A value is declared for what is computed."""
    said = f"an output is computed, so {output.name!r} cannot be given a value"
    return _at(source, output, said, f"write: output {output.name}")


def role_of_a_definition(source: Source, role: Declaration, defined: Statement) -> DefinitionError:
    """An input or parameter has an expression."""
    said = f"{role.name!r} is declared {role.role!r} but an expression defines it"
    return _at(source, defined, said, earlier=("it was declared here", role))


def output_of_nothing(source: Source, output: Declaration, known: Iterable[str]) -> DefinitionError:
    """An output has no expression."""
    said = f"{output.name!r} is declared an output, but nothing defines it"
    return _at(source, output, said, name_hint(output.name, known))


def cycle(source: Source, depends_on: Mapping[str, list[str]], stuck: set[str]) -> SourceError:
    """The definitions run in a circle; ``stuck`` are the vertices that no order has a place for."""
    tokens = tokenize(source.text)
    walk = [next(token for token in tokens if token in stuck)]
    seen = {walk[0]: 0}
    while (following := next(u for u in depends_on[walk[-1]] if u in stuck)) not in seen:
        seen[following] = len(walk)
        walk.append(following)
    # The walk went from users to what they use; edges run the other way.
    circle = walk[seen[following] :][::-1]
    first = next(token for token in tokens if token in seen and seen[token] >= seen[following])
    start = circle.index(first)
    path = (*circle[start:], *circle[: start + 1])
    return CycleError(
        f"these definitions run in a circle: {' -> '.join(path)}",
        spans(source)[tokens.index(first)],
        path=path,
        hint="a graph of expressions has no circles: one of these must not use the other",
    )


def not_free(graph: ExpressionGraph, name: str) -> UsageError:
    """A value is given to what takes none."""
    if name in graph.definitions:
        return UsageError(f"{name!r} is computed by the graph; inputs and parameters are given")
    free = {*graph.inputs, *graph.parameters}
    return UsageError(f"no input or parameter is called {name!r}", hint=name_hint(name, free))


def missing_values(graph: ExpressionGraph, missing: list[str]) -> MissingValueError:
    """Inputs or parameters have no value."""
    return MissingValueError(
        f"no value for {', '.join(missing)}", hint=_missing_hint(graph, missing[0])
    )


def _missing_hint(graph: ExpressionGraph, name: str) -> str:
    used = {n for s in graph.program.statements if isinstance(s, Definition) for n in s.names}
    unused = [n for n in graph.values if n not in used]
    if unused:
        return "; ".join(f"{n!r} has a value but stands in no expression" for n in unused)
    other = next((n for n in graph.definitions if n.casefold() == name.casefold()), None)
    if other is not None:
        return f"did you mean {other!r}? Capital and small letters differ"
    if name in _CONSTANTS:
        return f"there are no named constants: write {_CONSTANTS[name]}"
    return (
        f"give one: at={{{name!r}: 0.5}}, --at {name}=0.5, "
        f"or in the text: {graph.role(name)} {name} = 0.5"
    )


def no_common_shape(values: Mapping[str, Any]) -> UsageError:
    """Arrays of a point do not broadcast."""
    shapes = ", ".join(f"{n} {v.shape}" for n, v in values.items() if not isinstance(v, float))
    return UsageError(f"the arrays do not broadcast together: {shapes}")
