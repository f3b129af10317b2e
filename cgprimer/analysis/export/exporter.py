"""Export of a graph and its derivative program to a file in another language."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from cgprimer import __version__
from cgprimer.analysis.export import c_files, latex_files, python_files
from cgprimer.analysis.export.check_points import iterate_check_points
from cgprimer.analysis.export.program_statements import Exported, export_program
from cgprimer.analysis.scalar_points import check_scalar
from cgprimer.core.derivatives import (
    parse_element_of,
    resolve_output,
    resolve_wrt,
    running_statistics,
    tape_with_elements,
)
from cgprimer.core.loss_attachment import check_point, graph_with_loss
from cgprimer.core.methods.derivative_program import Names
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.errors import SourceError, UsageError, join_names
from cgprimer.expressions import Apply, Definition, ExpressionGraph, postorder, unparse
from cgprimer.support.array_values import Value, all_finite, count_axes
from cgprimer.support.validation import check_choice
from cgprimer.support.value_names import is_internal
from cgprimer.tapes import Tape, differentiate, elements, reachable, scalarize

TARGETS = ("python", "numpy", "torch", "jax", "c", "sympy", "latex")
_NUMBERS = ("python", "numpy", "torch", "jax", "c")
_SELF_CHECK = " Run the file to check it; the exit code is 1 if a result is wrong."
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
    """Export a graph and its derivatives as a readable, self-checking file in another language.

    The file has functions ``value`` and ``gradient`` with one line for each instruction. When it is
    run, it checks itself at several points, prints the results, and exits with code 1 if a number
    is wrong. In reverse mode, arrays stay arrays in ``numpy``, ``torch`` and ``jax``, with samples
    as leading axes; otherwise they are split into elements.

    Args:
        graph: the graph.
        to: ``python`` (only the standard library), ``numpy``, ``torch``, ``jax``, ``c`` (C99),
            ``sympy`` or ``latex`` (a document).
        at: a point at which the file checks itself; declared values are the defaults. Further
            points near it are sampled with a fixed seed.
        of: the scalar variable to differentiate; by default the only output.
        wrt: names with respect to which it is differentiated; by default all parameters, or all
            inputs of a graph without parameters. Where arrays stay arrays, an element selects the
            whole array.
        loss: a loss to differentiate instead, as in :func:`cgprimer.graph_with_loss`.
        method: one of :func:`cgprimer.methods`.
        options: options of the method, see :func:`cgprimer.differentiate`.

    Returns:
        The content of the file. A derivative has the shape of its variable.

    Raises:
        UsageError: a target, name, method or option is unknown; ``of`` is an array; the target
            cannot express the program of the method.
        SourceError: the target lacks a function of the graph.
        DifferentiationError: the method cannot differentiate the graph.

    >>> from cgprimer.core.graph import parse
    >>> text = export(parse("xw = k*xa^2"), "python")
    >>> print(text[text.index("def gradient") : text.index("# Test points")].rstrip())
    def gradient(xa, k):
        \"""Return the derivatives of xw, keyed by name (reverse mode).\"""
        v1 = power(xa, 2.0)
        # the derivative
        # bar_xw = 1.0
        bar_k = v1  # k -> xw
        return {
            "k": bar_k,
        }
    """
    check_choice("target", to, TARGETS)
    graph = graph_with_loss(graph, loss, check_point(at))
    target, names = resolve_output(graph, of), resolve_wrt(graph, wrt)
    _check_method(graph, to, method, names, options)
    primal = tape_with_elements(graph, (target, *names))
    alternative = ", or a loss (--loss)"
    check_scalar(primal, target, "only scalars can be differentiated", alternative=alternative)
    keeps_arrays = to in python_files.ARRAYS and method == "reverse"
    _check_functions(graph, to, primal, target, keeps_arrays=keeps_arrays)
    if keeps_arrays:
        names = tuple(dict.fromkeys(parse_element_of(graph, name)[0] for name in names))
    else:
        shapes = {name: primal.shapes[primal.index(name)] for name in names}
        names = tuple(e for name, shape in shapes.items() for e in elements(name, shape))
        primal = scalarize(primal)
    program = differentiate(primal, target, names, method=method, **options)
    exported = export_program(
        graph, program, ascii_only=to in ("c", "latex"), is_reserved=_create_reserved_test(to)
    )
    if not exported.leaves:
        raise UsageError(f"{target!r} is constant: it does not depend on any input or parameter")
    point = _create_point(graph, at, keeps_arrays=keeps_arrays)
    points = list(iterate_check_points(program, exported.leaves, point))
    if exported.seeds and not all(map(all_finite, points[0].right.values())):
        # A zero seed is an ordinary number: multiplied by an infinite partial, it gives nan.
        return export(graph, to, at, of=of, wrt=wrt, method=method, carry=True)
    header = _format_header(exported, to)
    if to == "c":
        return c_files.build_c_file(exported, points, header)
    if to == "latex":
        return latex_files.render_latex_file(exported, points, header)
    return python_files.build_python_file(exported, points, to, header)


def _create_point(
    graph: ExpressionGraph, at: Mapping[str, Value] | None, *, keeps_arrays: bool
) -> dict[str, Any]:
    """Return a point of given and declared values, with arrays split unless ``keeps_arrays``.

    Raises:
        UsageError: a value has several samples.
    """
    point = graph.point(at, needed=())
    for name, value in point.items():
        if count_axes(value) > len(graph.shapes.get(name, ())):
            raise UsageError(f"expected one sample, got an array of samples for {name!r}")
    point |= running_statistics(graph, point)
    if keeps_arrays:
        return point
    return split_arrays(point, {name: getattr(v, "shape", ()) for name, v in point.items()})


def _create_reserved_test(to: str) -> Callable[[str], bool]:
    """Return a predicate that tells whether the target language reserves a word."""
    if to == "c":
        return c_files.is_reserved
    return python_files.create_reserved_test(to) if to != "latex" else lambda name: False


def _format_header(exported: Exported, to: str) -> str:
    """Build the text of the comment at the top of an exported file."""
    file = re.split(r"[/\\]", exported.graph.source.name)[-1]
    title = re.sub(r"[^\w.-]", "", file, flags=re.ASCII)
    lines = [
        f"{title or 'A graph'}: {exported.of} and its derivatives ({exported.method}).",
        "",
        *(f"    {line}" for line in str(exported.graph).split("\n")),
        "",
        f"Generated by cgprimer {__version__}." + ("" if to == "latex" else _SELF_CHECK),
    ]
    renamed = [
        f"{name}\u00a0->\u00a0{identifier}"  # no line break within a pair
        for name, identifier in exported.idents.items()
        if name != identifier and not is_internal(name)
    ]
    if renamed:
        text = f"Renamed: {', '.join(renamed)}"
        wrapped = textwrap.wrap(text, 96, break_long_words=False, break_on_hyphens=False)
        lines += ["", *(line.replace("\u00a0", " ") for line in wrapped)]
    return "\n".join(lines)


def _check_method(
    graph: ExpressionGraph, to: str, method: str, names: tuple[str, ...], options: Any
) -> None:
    """Raise UsageError for finite differences that the target language does not support."""
    if method != "finite-difference":
        return
    if to not in _NUMBERS:
        raise UsageError(
            f"the target {to!r} does not support finite differences",
            hint=f"use another method, or one of the targets {join_names(_NUMBERS)}",
        )
    if options.get("scheme") == "complex-step":
        raise UsageError(
            "exported files do not support the scheme 'complex-step'",
            hint="use scheme='central' (--scheme central)",
        )
    free = (*graph.inputs, *graph.parameters)
    inner = [name for name in names if parse_element_of(graph, name)[0] not in free]
    if inner:
        raise UsageError(
            f"cannot export finite differences with respect to {inner[0]!r}: it is not an input or"
            " parameter",
            hint=f"choose one of {join_names(free)}",
        )


def _check_functions(
    graph: ExpressionGraph, to: str, primal: Tape, target: str, *, keeps_arrays: bool
) -> None:
    """Raise SourceError at the first function that the target language lacks."""
    needed = reachable(primal, [primal.index(target)])[len(primal.leaves) :]
    used = {n for (n, _), is_needed in zip(primal.instructions, needed, strict=True) if is_needed}
    if not keeps_arrays:
        used = {name for name in used if isinstance(name, str) or name.runs_python}
    missing = sorted((name for name in used if not _LANGUAGES[to].supports(name)), key=str)
    if not missing:
        return
    operation = missing[0]
    others = [t for t in TARGETS if _LANGUAGES[t].supports(operation)]
    name = operation if isinstance(operation, str) else operation.spelling
    if len(others) > 1:
        hint = f"use one of the targets {join_names(others)}"
    else:
        hint = f"use the target {others[0]}" if others else "no target supports this function"
    message = f"the target {to!r} has no function {name!r}"
    for vertex, expression in graph.definitions.items():
        for node in postorder(expression):
            if isinstance(node, Apply) and node.primitive == name:
                statements = graph.program.statements
                definition = next(
                    s for s in statements if isinstance(s, Definition) and s.name == vertex
                )
                span = graph.program.expression_span(definition, unparse(node))
                raise SourceError(f"{message} (used in {vertex!r})", span, hint=hint)
    raise UsageError(message, hint=hint)
