"""``cgprimer identifiability``: which parameters the data determine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from cgprimer.cli.common import echo_json, graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import NAMES
from cgprimer.cli.shared_options import (
    at_option,
    columns_option,
    data_option,
    json_option,
    samples_option,
    sampling_options,
    truth_option,
)
from cgprimer.expressions import ExpressionGraph


@graph_command()
@at_option
@data_option
@columns_option
@option(
    "--wrt", **NAMES, help="Parameters to analyze; all others are treated as known (default: all)."
)
@samples_option
@sampling_options
@truth_option
@json_option
def command(
    graph: ExpressionGraph,
    at: dict[str, Any],
    data: str | None,
    columns: dict[str, str],
    wrt: tuple[str, ...],
    truth: dict[str, float],
    as_json: bool,
    **sampling: Any,
) -> None:
    """Find the parameters, and combinations of parameters, that the data determine.

    \b
    Examples:
      cgprimer identifiability lecture
      cgprimer identifiability lecture --wrt ab,bc
      cgprimer identifiability lecture --data lecture.csv --at run.json

    The Jacobian of the outputs with respect to the parameters is evaluated at the declared values,
    or at the values of --at. Its rank is the number of combinations that the data determine.
    """
    from cgprimer.cli.training_data import load_or_generate_data
    from cgprimer.errors import UsageError
    from cgprimer.training.identifiability import MAX_PARAMETERS, identifiability
    from cgprimer.training.parameter_vector import ParameterVectors

    origin = {**sampling, "data": data, "columns": columns, "validation": None}
    dataset, _ = load_or_generate_data(graph, origin, truth)
    point = graph.point({**truth, **at}, needed=graph.parameters)
    values = {name: point[name] for name in graph.parameters}
    result = identifiability(graph, dataset, values, wrt=wrt)
    if result is None:
        n_columns = len(wrt) or len(ParameterVectors(graph).elements)
        if n_columns > MAX_PARAMETERS:
            raise UsageError(
                f"the Jacobian must have at most {MAX_PARAMETERS} columns, got {n_columns:,}",
                hint="choose parameters with --wrt",
            )
        raise UsageError(
            "the Jacobian has elements that are not finite", hint="choose other values with --at"
        )
    if as_json:
        echo_json(asdict(result))
        return
    lines = result.sentences(graph.outputs, every=True)
    click.echo("\n".join(lines or ["The data determine every parameter."]))
