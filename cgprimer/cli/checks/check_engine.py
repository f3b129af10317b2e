"""``cgprimer check engine``: engines that students write themselves, on a ladder of ten stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from cgprimer.cli.checks.check_options import check_command, submission_options
from cgprimer.cli.common import check_outputs, note
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import PATH, POSITIVE_INTEGER, TEXT
from cgprimer.course.checks.batch_checks import Check
from cgprimer.course.checks.submission_search import find_submissions
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import SHORT, format_number


@check_command()
@option(
    "--stage",
    **POSITIVE_INTEGER,
    help="Stage: 1 difference quotient, 2 values, 3 topological order, 4 reverse mode, 5"
    " accumulation, 6 zeroing, 7 optimizer, 8 tape, 9 second order, 10 small"
    " network (default: all).",
)
@option(
    "--about",
    is_flag=True,
    help="Print the idea, formula, task and checks of the stage, and exit.",
)
@option(
    "--draw",
    **PATH,
    help="Draw the graph that the submission builds (.svg, .png or .pdf), and exit.",
)
@option(
    "--trace",
    "traced",
    is_flag=True,
    help="Print the values and gradients that the submission computes, and exit.",
)
@option(
    "-e",
    "--expression",
    "text",
    **TEXT,
    help="Expression to draw or trace (default: e = (a + b)*(b + 1)).",
)
@submission_options
def command(
    stage: int | None, about: bool, draw: str | None, traced: bool, text: str | None
) -> Check:
    """Check an automatic differentiation engine written by a student.

    \b
    Examples:
      cgprimer check engine --stage 2 --about
      cgprimer check engine --stage 2 --skeleton > engine.py
      cgprimer check engine engine.py --stage 2
      cgprimer check engine engine.py
      cgprimer check engine engine.py --draw graph.svg -e "y = x*x + x"
    """
    from cgprimer.course.checks.engine_check import check_engine
    from cgprimer.course.checks.engine_ladder import (
        build_engine_skeleton,
        list_possible_points,
        read_stage_page,
    )

    context = click.get_current_context()
    check = Check(
        "engine",
        f"{stage}",
        lambda submission, limits: check_engine(submission, stage, limits=limits),
        build_engine_skeleton(stage),
        f"cgprimer.check_engine(NAMES, {stage})",
        list_possible_points(stage),
    )
    if about:
        if stage is None:
            raise UsageError("--about requires --stage", hint="add --stage N, with N from 1 to 10")
        click.echo(read_stage_page(stage), nl=False)
        context.exit()
    if draw or traced:
        paths = [Path(path) for path in context.params["submissions"]]
        for path in find_submissions(paths).values():
            _show_values(path, draw, traced, text, context.params)
        context.exit()
    if text:
        raise UsageError("-e requires --draw or --trace")
    return check


def _show_values(
    path: Path, draw: str | None, traced: bool, text: str | None, options: Mapping[str, Any]
) -> None:
    """Print or draw the values and gradients that a submitted engine computes."""
    from cgprimer.course.checks.engine_check import DEFAULT_EXPRESSION, build_engine_graph
    from cgprimer.course.checks.sandbox import Limits

    check_outputs(options["force"], draw)
    limits = Limits(*(options[n] for n in ("time", "memory", "output_limit", "processes")))
    limits = replace(limits, forbidden=options["forbid"])
    graph, grads = build_engine_graph(path, text or DEFAULT_EXPRESSION, limits=limits)
    if traced:
        from cgprimer.analysis.text_tables import table

        click.echo(
            table(
                ["value", "expression", "data", "grad"],
                _build_value_rows(graph, grads),
                left=(0, 1),
            )
        )
    if draw:
        _draw_values(graph, grads, Path(draw))


def _build_value_rows(graph: ExpressionGraph, grads: dict[str, float]) -> list[list[str]]:
    """Return a table row for each value: its name, expression, value and gradient."""
    numbers = graph.evaluate()
    formulas = {name: graph.expression(name) for name in graph.definitions}
    shown = {name: format_number(value) for name, value in grads.items()}
    every = graph.variables
    return [
        [n, formulas.get(n, ""), format_number(float(numbers[n])), shown.get(n, "")] for n in every
    ]


def _draw_values(graph: ExpressionGraph, grads: dict[str, float], path: Path) -> None:
    """Draw the graph that a submitted engine builds, with its values and gradients."""
    from cgprimer.visualization.diagrams.diagram_formats import formats, save_diagram
    from cgprimer.visualization.diagrams.figure_files import check_picture_path
    from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram

    check_picture_path(path, formats())
    diagram = graph_diagram(graph, values=True)
    gradient_lines = {
        name: (f"grad = {format_number(value, SHORT)}",) for name, value in grads.items()
    }
    nodes = tuple(
        replace(n, detail=(*n.detail, *gradient_lines.get(n.key, ()))) for n in diagram.nodes
    )
    save_diagram(replace(diagram, nodes=nodes), path)
    note(f"wrote {path}")
