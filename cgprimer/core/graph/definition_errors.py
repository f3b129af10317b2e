"""Errors of definitions and declarations: repeated names, invalid declarations and cycles.

The module is loaded when a text has declarations or an error.
"""

from __future__ import annotations

from collections.abc import Mapping

from cgprimer.core.language.syntax_tree import Declaration, Definition, Program
from cgprimer.core.language.tokens import locate_tokens, tokenize
from cgprimer.errors import CycleError, DefinitionError, Source, name_hint

_MAX_SHOWN = 12  # vertices of a cycle that a message shows


def repeated_name_error(
    program: Program, first: Definition | Declaration, second: Definition | Declaration
) -> DefinitionError:
    """Return the error for a name that is defined or declared twice."""
    is_definition = isinstance(first, Definition)
    kind, hint = ("defined", "rename the second variable") if is_definition else ("declared", "")
    earlier = [(f"first {kind} here", program.name_span(first))]
    message, span = f"{second.name!r} is {kind} twice", program.name_span(second)
    return DefinitionError(message, span, hint=hint, related=earlier)


def check_declarations(
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


def cycle_error(
    source: Source, depends_on: Mapping[str, list[str]], unordered: set[str]
) -> CycleError:
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
        hint="remove one of these references to break the cycle",
    )
