"""``cgprimer grad``: compute values and derivatives at a point."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from cgprimer.cli.common import echo_json, graph_command, note
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import NAMES, followed_files
from cgprimer.cli.shared_options import (
    at_option,
    engine_option,
    json_option,
    method_options,
    take_method_options,
    wrt_option,
)
from cgprimer.core.methods.derivative_program import Derivatives
from cgprimer.expressions import Declaration, ExpressionGraph, parse_element

_DIGITS = 10  # in the table of several points
_MAX_ELEMENTS = 64  # numbers of an array that are printed with all digits


def _format_value(name: str, value: Any) -> str:
    """Format ``name = value`` with all digits; shorten large arrays."""
    if isinstance(value, float) or value.size <= _MAX_ELEMENTS:
        if isinstance(value, float):
            return f"{name} = {value!r}"
        margin = len(name) + len(" = ") + value.ndim

        def break_line(ends: re.Match[str]) -> str:  # align each row with the previous row
            """Return a line break and spaces that align a row of a matrix with the previous row."""
            return f"{ends[1]},\n{' ' * (margin - len(ends[1]))}["

        return f"{name} = " + re.sub(r"(\]+), \[", break_line, repr(value.tolist()))
    from cgprimer.support.number_format import format_array

    return f"{name} = {format_array(value)}"


def _format_points(graph: ExpressionGraph, at: dict[str, Any], result: Derivatives) -> str:
    """Format derivatives at several points as a table; return "" if there is only one point."""
    free = {*graph.inputs, *graph.parameters} - graph.shapes.keys()
    varied = [n for n, value in at.items() if isinstance(value, list) and n in free]
    if not varied or any(len(at[name]) != len(at[varied[0]]) for name in varied):
        return ""
    import numpy as np

    from cgprimer.analysis.text_tables import table
    from cgprimer.support.number_format import format_number

    columns = {name: at[name] for name in varied} | result.values
    columns |= {f"d {name}/d {other}": value for (name, other), value in result.derivatives.items()}
    many = (len(at[varied[0]]),)
    if any(np.shape(value) not in ((), many) for value in columns.values()):
        return ""
    rows = zip(*(np.broadcast_to(value, many).tolist() for value in columns.values()), strict=True)
    return table(list(columns), [[format_number(v, _DIGITS) for v in row] for row in rows], left=())


def _explain_roles(graph: ExpressionGraph, at: Mapping[str, Any]) -> str:
    """Return a note if `at` has values for both undeclared inputs and undeclared parameters.

    In ``2*x^2 + 3*y^2``, x is an input and y is a parameter because of their names; a point with
    values for both suggests that both derivatives are of interest.
    """
    declared = {s.name for s in graph.program.statements if isinstance(s, Declaration)}
    assigned = {name for key in at if (name := parse_element(str(key))[0]) not in declared}
    inputs = [name for name in graph.inputs if name in assigned]
    parameters = [name for name in graph.parameters if name in assigned]
    if not (inputs and parameters):
        return ""

    several = len(inputs) + len(parameters) > 2
    roles = f"{', '.join(inputs)} {'is an input' if len(inputs) == 1 else 'are inputs'}"
    roles += f", {', '.join(parameters)} {'a parameter' if len(parameters) == 1 else 'parameters'}"
    return (
        f"note: {roles}; --wrt {','.join([*inputs, *parameters])} differentiates with respect to"
        f" {'all' if several else 'both'}"
    )


@graph_command(with_loss=True)
@at_option
@option("--of", **NAMES, help="Variables to differentiate (default: all outputs).")
@wrt_option
@method_options("reverse")
@engine_option
@option("--show", is_flag=True, help="Print the derivative program, and exit.")
@option(
    "--simplify",
    is_flag=True,
    help="Fold constants and merge equal products in the program; requires --show.",
)
@option(
    "--why",
    "explain",
    is_flag=True,
    help="Explain the origin of the first non-finite value or derivative, and exit.",
)
@json_option
def command(
    graph: ExpressionGraph,
    method: str,
    show: bool,
    simplify: bool,
    explain: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Compute the outputs of a graph and their derivatives.

    \b
    Examples:
      cgprimer grad lecture
      cgprimer grad lecture --at xa=-0.5 --wrt xa,xx,ab
      cgprimer grad -e "xw = sin(xa)" --at xa=1 --wrt xa --method finite-difference --step 1e-8
      cgprimer grad sine_chain --at w=0:6.283:25,b=0:6.283:25
      cgprimer grad lecture --show
      cgprimer grad -e "xw = where(less(x, 0), 0, sqrt(x))" --at x=-1 --wrt x --why
      cgprimer grad matrix_backpropagation --at "x=[[1,2]],y=3" --wrt "w1,w2[0,0]"
    """
    from cgprimer.analysis.nonfinite_origin import why
    from cgprimer.core.derivatives import compute_derivatives, layer_mode_at, tape_with_elements
    from cgprimer.errors import UsageError
    from cgprimer.support.array_values import all_finite
    from cgprimer.tapes import differentiate

    explicit = settings["wrt"] or followed_files()  # values of a run are meant to be its parameters
    roles_note = "" if explicit else _explain_roles(graph, settings["at"])
    names = settings["wrt"] or graph.parameters or graph.inputs
    if not names:
        hint = "'xa = 2' defines a variable; values are declared: input xa = 2, parameter ab = 1"
        raise UsageError(
            "cannot differentiate: the graph has no parameters and no inputs", hint=hint
        )
    options = take_method_options(method, settings)
    settings |= {"wrt": names, "of": settings["of"] or None}
    if simplify and not show:
        raise UsageError("--simplify requires --show")
    if show:
        if method == "reverse" and not simplify:
            options["simplify"] = False
        of = settings["of"] or graph.outputs
        click.echo(
            str(differentiate(tape_with_elements(graph, of), of, names, method=method, **options))
        )
        return
    point = {name: settings[name] for name in ("at", "of", "wrt")}
    if explain:
        cause = why(graph, **point)
        if as_json:
            echo_json(cause and cause.to_dict())
        else:
            click.echo(cause or "all values and derivatives are finite")
        return
    result = compute_derivatives(graph, method=method, **settings, **options)
    _print_derivatives(graph, result, method, settings["at"], as_json=as_json)
    if roles_note:
        note(roles_note)
    primal = tape_with_elements(graph, (), layer_mode_at(graph, settings["at"]))
    if method == "reverse" and primal.combines_samples:
        note(
            "note: the samples depend on each other: reverse mode computes the contribution of each"
            " sample to the derivative of the sum; --method forward differentiates each sample"
        )
    if not all(map(all_finite, (*result.values.values(), *result.derivatives.values()))):
        cause = why(graph, **point)
        explanation = cause.sentence if cause else f"not finite by {method}; by reverse mode it is"
        note(f"note: {explanation} (--why explains)" if cause else f"note: {explanation}")


def _print_derivatives(
    graph: ExpressionGraph, result: Derivatives, method: str, at: dict[str, Any], *, as_json: bool
) -> None:
    """Print derivatives as JSON, as a table with a row per point, or one derivative per line."""
    if as_json:
        gradient: dict[str, dict[str, Any]] = {name: {} for name in result.values}
        for (name, other), value in result.derivatives.items():
            gradient[name][other] = value
        echo_json({"method": method, "values": result.values, "gradient": gradient})
    elif points := _format_points(graph, at, result):
        click.echo(points)
    else:
        for name, value in result.values.items():
            click.echo(_format_value(name, value))
        for (name, other), value in result.derivatives.items():
            click.echo(_format_value(f"d {name} / d {other}", value))
