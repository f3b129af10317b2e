"""From text to a graph: roles, edges, order, and the errors that a whole text can have."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cgprimer.core.garbage_collection import collector_paused
from cgprimer.core.graph.expression_graph import ExpressionGraph
from cgprimer.core.language.syntax import Declaration, Definition, Name, Program, leaves
from cgprimer.core.primitives.notation import parse_program
from cgprimer.errors import (
    CycleError,
    DefinitionError,
    Source,
    SourceError,
    Span,
    UsageError,
    did_you_mean,
    name_hint,
)
from cgprimer.files import examples


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
        lists = isinstance(expressions, Iterable) and not isinstance(expressions, bytes)
        parts: list[Any] = list(expressions) if lists else [expressions]
        wrong = [type(p).__name__ for p in parts if not isinstance(p, str)]
        if wrong:
            raise UsageError(f"expressions are text or a list of texts, not {wrong[0]}")
        expressions = "\n".join(parts)
    with collector_paused():
        return _build(parse_program(expressions, source_name=name))


def load(path: str | Path) -> ExpressionGraph:
    """An expression graph from a file in UTF-8; ``-`` is standard input.

    The name of an example, where no file is called so, is that example: they are at hand wherever
    the package is installed.

    Raises:
        UsageError: the file cannot be read, or is not text.
        SourceError: its text is not a graph.

    >>> load("lecture")
    <ExpressionGraph lecture.cg: 1 input, 4 expressions, 4 parameters>
    """
    name = str(path)
    if name in examples() and not Path(path).is_file():
        path, name = examples()[name], f"{name}.cg"
    try:
        if str(path) == "-":
            return parse(sys.stdin.read(), name="<stdin>")
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        near = did_you_mean(Path(path).stem, examples())
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}",
            hint=near and f"{near} ('cgprimer examples' lists the examples)",
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})") from None
    return parse(text, name=name)


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
                f"{statement.name!r} is defined twice",
                _span(source, statement),
                related=[("it was first defined here", _span(source, earlier))],
                hint="give the second one a name of its own",
            )
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
                _span(source, declarations[name]),
                hint=name_hint(name, definitions),
            )

    is_variable = {
        name: name in definitions or roles.get(name, "input" if name[0] == "x" else "") == "input"
        for name in first
    }
    order = _topological_order(
        source, [n for n in first if is_variable[n]], uses, is_variable, first
    )
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
    )


def _span(source: Source, statement: Definition | Declaration) -> Span:
    return Span(source, statement.start, statement.end)


def _declare(source: Source, statement: Declaration, declarations: dict[str, Declaration]) -> None:
    earlier = declarations.setdefault(statement.name, statement)
    if earlier is not statement:
        raise DefinitionError(
            f"{statement.name!r} is declared twice",
            _span(source, statement),
            related=[("it was first declared here", _span(source, earlier))],
        )
    if statement.role == "output" and statement.value is not None:
        raise DefinitionError(
            f"an output is computed, so {statement.name!r} cannot be given a value",
            _span(source, statement),
            hint=f"write: output {statement.name}",
        )


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
        Span(source, *first[path[0]]),
        path=tuple(path),
        hint="a graph of expressions has no circles: one of these must not use the other",
    )
