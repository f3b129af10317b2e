"""``cgprimer.export``: the one function of this room that others call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cgprimer import __version__
from cgprimer.analysis.export import c_files, latex_files, python_files
from cgprimer.analysis.export.check_points import points
from cgprimer.analysis.export.program_statements import Exported, exported
from cgprimer.core.derivatives import (
    parse_element_of,
    resolve_output,
    resolve_wrt,
    running_statistics,
    tape_with_elements,
)
from cgprimer.core.loss_attachment import check_point, graph_with_loss
from cgprimer.core.methods.derivative_program import Names
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.errors import SourceError, UsageError, join_names, name_hint
from cgprimer.expressions import Apply, Definition, ExpressionGraph, postorder, unparse
from cgprimer.support.array_values import Value, all_finite, count_axes
from cgprimer.support.value_names import is_internal
from cgprimer.tapes import Tape, differentiate, elements, reachable, scalarize

TARGETS = ("python", "numpy", "torch", "jax", "c", "sympy", "latex")
_NUMBERS = ("python", "numpy", "torch", "jax", "c")
_LANGUAGES = {**python_files.LANGUAGES, "c": c_files.C, "latex": latex_files.LATEX}


def export(
    graph: ExpressionGraph,
    to: str = "python",
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    loss: str | None = None,
    method: str = "reverse",
    **options: Any,
) -> str:
    """A graph and its derivative program as a readable file in another language.

    The file has functions ``value`` and ``gradient``, one line for each instruction, and numbers
    that it checks itself against when it is run: it prints what it checks, and its exit code is 1
    if something is wrong. Arrays stay arrays in ``numpy``, ``torch`` and ``jax`` by reverse mode,
    with samples as leading axes; elsewhere the graph is written out in numbers.

    Args:
        graph: the graph.
        to: ``python`` (the standard library alone), ``numpy``, ``torch``, ``jax``, ``c`` (C99),
            ``sympy`` or ``latex``, a document.
        at: a point at which the file checks itself; declared values fill the rest. Others beside
            it are drawn, always the same.
        of: the variable to differentiate, one number; the only output unless given.
        wrt: with respect to which names; by default all parameters (all inputs of a graph
            without parameters). Where arrays stay arrays, an
            element stands for its array.
        loss: a loss to differentiate instead, as in :func:`cgprimer.graph_with_loss`.
        method: one of :func:`cgprimer.methods`.
        options: of the method, see :func:`cgprimer.differentiate`.

    Returns:
        The text of the file. Values are dimensionless; a derivative has the shape of its name.

    Raises:
        UsageError: an unknown target, name, method or option; ``of`` is an array; the method has
            no program that the target can express.
        SourceError: a function that the target lacks; it shows where, and which targets can.
        DifferentiationError: the method cannot do it.

    >>> from cgprimer.core.graph import parse
    >>> text = export(parse("xw = k*xa^2"), "python")
    >>> print(text[text.index("def gradient") : text.index("# Points")].rstrip())
    def gradient(xa, k):
        \"""The derivatives of xw, by name: reverse mode.\"""
        v1 = power(xa, 2.0)
        # the derivative
        # bar_xw = 1.0
        bar_k = v1  # k -> xw
        return {
            "k": bar_k,
        }
    """
    if to not in TARGETS:
        raise UsageError(f"there is no target {to!r}", hint=name_hint(to, TARGETS))
    graph = graph_with_loss(graph, loss, check_point(at))
    target, names = resolve_output(graph, of), resolve_wrt(graph, wrt)
    _check_method(graph, to, method, names, options)
    primal = tape_with_elements(graph, (target, *names))
    shape = primal.shapes[primal.index(target)]
    if shape:
        first = next(elements(target, shape))
        raise UsageError(
            f"{target!r} has shape {format_shape(shape)}: a file has the gradient of one number",
            hint=f"take an element, of={first!r} (--of {first}), or a loss of it (--loss)",
        )
    whole = to in python_files.ARRAYS and method == "reverse"
    if whole:
        names = tuple(dict.fromkeys(parse_element_of(graph, name)[0] for name in names))
    _check_functions(graph, to, primal, target, whole=whole)
    if not whole:
        shapes = {name: primal.shapes[primal.index(name)] for name in names}
        names = tuple(e for name, own in shapes.items() for e in elements(name, own))
        primal = scalarize(primal)
    program = differentiate(primal, target, names, method=method, **options)
    own = to in ("c", "latex")
    made = exported(graph, program, ascii_only=own, taken=_taken(to))
    if not made.leaves:
        raise UsageError(f"{target!r} depends on no input and no parameter: it is a number")
    given = graph.point(at, needed=())
    if several := [n for n, v in given.items() if count_axes(v) > len(graph.shapes.get(n, ()))]:
        raise UsageError(f"a file checks itself at points, and {several[0]!r} has many samples")
    given |= running_statistics(graph, given)
    if not whole:
        given = split_arrays(
            given, {name: getattr(value, "shape", ()) for name, value in given.items()}
        )
    checked = list(points(program, made.leaves, given))
    if made.seeds and not all(map(all_finite, checked[0].right.values())):
        # A seed of 0 is a number like any other: with an infinite partial it would be nan.
        return export(graph, to, at, of=of, wrt=wrt, method=method, carry=True)
    header = _header(made, to)
    if to == "c":
        return c_files.c_file(made, checked, header)
    if to == "latex":
        return latex_files.latex_file(made, checked, header)
    return python_files.python_file(made, checked, to, header)


def _taken(to: str) -> Any:
    if to in ("c", "latex"):
        return c_files.taken if to == "c" else lambda name: False
    return python_files.taken(to)


def _header(made: Exported, to: str) -> str:
    """What a file says about itself: words of ours, names, numbers and operators, no more."""
    called = re.sub(r"[^\w.-]", "", re.split(r"[/\\]", made.graph.source.name)[-1], flags=re.ASCII)
    lines = [
        f"{called or 'A graph'}: {made.of}, and its derivatives by {made.method}.",
        "",
        *(f"    {line}" for line in str(made.graph).split("\n")),
        "",
        f"Written by cgprimer {__version__}."
        + ("" if to == "latex" else " Run, it checks itself; the exit code is 1 if it is wrong."),
    ]
    renamed = [
        f"{n} is {here}" for n, here in made.idents.items() if n != here and not is_internal(n)
    ]
    if renamed:
        lines += ["", f"Names that are others here: {', '.join(renamed)}"]
    return "\n".join(lines)


def _check_method(
    graph: ExpressionGraph, to: str, method: str, names: tuple[str, ...], options: Any
) -> None:
    """Differences are quotients of numbers: formulas and inner variables have none."""
    if method != "finite-difference":
        return
    if to not in _NUMBERS:
        raise UsageError(
            f"{to!r} has formulas, and finite differences are quotients of numbers",
            hint=f"another method, or one of {join_names(_NUMBERS)}",
        )
    if options.get("scheme") == "complex-step":
        raise UsageError("a complex step needs complex numbers: no file has them",
                         hint="scheme='central' (--scheme central)")  # fmt: skip
    free = (*graph.inputs, *graph.parameters)
    inner = [name for name in names if parse_element_of(graph, name)[0] not in free]
    if inner:
        raise UsageError(
            f"{inner[0]!r} is computed: a file moves what it is given",
            hint=f"choose one of {join_names(free)}",
        )


def _check_functions(
    graph: ExpressionGraph, to: str, primal: Tape, target: str, *, whole: bool
) -> None:
    """Raise SourceError if the target lacks a function, with the place where it stands."""
    needed = reachable(primal, [primal.index(target)])[len(primal.leaves) :]
    used = {n for (n, _), wanted in zip(primal.instructions, needed, strict=True) if wanted}
    plain = {n for n in used if isinstance(n, str) or n.runs_python}
    lacking = sorted((n for n in (used if whole else plain) if not _LANGUAGES[to].has(n)), key=str)
    if not lacking:
        return
    name = lacking[0]
    others = [t for t in TARGETS if _LANGUAGES[t].has(name)]
    called = name if isinstance(name, str) else name.spelling
    hint = f"these can: {', '.join(others)}" if others else "no target can: it is Python's own"
    for vertex, expression in graph.definitions.items():
        for node in postorder(expression):
            if isinstance(node, Apply) and node.primitive == called:
                statements = graph.program.statements
                here = next(s for s in statements if isinstance(s, Definition) and s.name == vertex)
                place = graph.program.expression_span(here, unparse(node))
                raise SourceError(f"{to!r} has no {called!r}, in {vertex!r}", place, hint=hint)
    raise UsageError(f"{to!r} has no {called!r}", hint=hint)
