"""``cgprimer primitives``: the table of functions."""

from __future__ import annotations

import click

from cgprimer.cli.common import echo_json, make_command
from cgprimer.cli.shared_options import json_option

# Functions of arrays: spelling, meaning, and adjoints of the operands for a result adjoint ``bar``.
ARRAYS = {
    "matmul": ("a @ b", "matrix product, also with vectors",
               "bar @ transpose(b); transpose(a) @ bar"),
    "index": ("a[0], a[1:3], a[:,0], a[[0,2]]", "elements by index, from 0",
              "bar at these indices, 0 elsewhere"),
    "sum": ("sum(a), sum(a, 0)", "sum of all elements, or along axes",
            "bar, broadcast to the shape of a"),
    "mean": ("mean(a), mean(a, 0)", "mean of all elements, or along axes",
             "bar/n, broadcast to the shape of a"),
    "largest": ("max(a)", "largest element", "bar at its index, split equally between ties"),
    "largest_along": ("largest(a, 0)", "largest elements along axes",
                      "bar at their indices, split equally between ties"),
    "smallest": ("min(a)", "smallest element", "bar at its index, split equally between ties"),
    "dot": ("dot(a, b)", "sum of the elementwise products", "bar*b; bar*a"),
    "norm": ("norm(a)", "square root of the sum of squares", "bar*a/out, or 0 if out is 0"),
    "softmax": ("softmax(a), softmax(a, 0)", "exponentials divided by their sum, by default along"
                " the last axis", "out*(bar - sum(bar*out))"),
    "log_softmax": ("log_softmax(a)", "logarithm of softmax", "bar - exp(out)*sum(bar)"),
    "transpose": ("transpose(a), transpose(a, 1, 0)", "axes in reverse or in the given order",
                  "bar, with its axes in the order of a"),
    "reshape": ("reshape(a, 2, -1)", "same elements in another shape", "bar in the shape of a"),
    "broadcast": ("broadcast(a, 8, 4)", "broadcast to a shape, as in numpy",
                  "bar, summed over the broadcast axes"),
    "concatenate": ("concatenate(a, b, 0)", "arrays joined along an axis, by default the first",
                    "the part of bar for each array"),
    "batch_mean": ("batch_mean(a)", "mean over the samples of a batch",
                   "mean of bar over the samples"),
    "dropout": ("dropout(a, 0.5)", "training: keep elements with the given probability;"
                " evaluation: multiply by it",
                "training: bar*mask; evaluation: bar*0.5"),
    "batchnorm": ("batchnorm(a, gamma, beta)", "normalized to mean 0 and variance 1 over the batch,"
                  " then multiplied by gamma, plus beta",
                  "includes the derivatives of the batch mean and variance"),
}  # fmt: skip
_SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "**": "pow"}


@make_command()
@json_option
@click.argument("names", nargs=-1)
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the functions of the language and their derivatives.

    \b
    Examples:
      cgprimer primitives
      cgprimer primitives tanh max
      cgprimer primitives softmax @
      cgprimer primitives --json

    Derivatives are formulas of the language: a, b and c are the operands, out is the result.
    For functions of arrays, the last column is the adjoint of each operand, where bar is the
    adjoint of the result.
    """
    from cgprimer.analysis.text_tables import table
    from cgprimer.core.operations import OPERANDS, Primitive, find_primitive, primitives
    from cgprimer.core.operations.primitive_registry import FUNCTIONS
    from cgprimer.expressions import Apply, Name, unparse

    requested_names = [{"@": "matmul", "[": "index"}.get(name, name) for name in names]
    matches = [
        FUNCTIONS[name] or (() if name in ARRAYS else (find_primitive(_SIGNS.get(name, name)),))
        for name in requested_names
    ]
    all_rows = [row for several in matches for row in several] if names else primitives()
    rows = [row for row in all_rows if isinstance(row, Primitive)]
    of_arrays = {*requested_names, *(row.name for row in all_rows)} if names else ARRAYS.keys()
    arrays = {name: texts for name, texts in ARRAYS.items() if name in of_arrays}
    if as_json:
        shown = ("arity", "partials", "domain", "edges", "analytic")
        labels = ({"name": r.name, "function": r.spelling} for r in rows)
        keys = ("function", "meaning", "reverse")
        echo_json(
            [n | {s: getattr(r, s) for s in shown} for n, r in zip(labels, rows, strict=True)]
            + [{"name": n, **dict(zip(keys, t, strict=True))} for n, t in arrays.items()]
        )
        return
    cells = []
    for r in rows:
        operands = OPERANDS[: r.arity]
        call = unparse(Apply(r.name, tuple(map(Name, operands))))
        partials = [f"d/d{o} = {text}" for o, text in zip(operands, r.partials, strict=True)]
        if not names:
            cells.append([call, "; ".join(partials), r.domain])
            continue
        click.echo("\n  ".join([call, *partials, f"domain: {r.domain}"]))
        for what in ("edges", "source"):
            if getattr(r, what):
                click.echo(f"  {what}: {getattr(r, what)}")
    if cells:
        click.echo(table(["function", "partial derivatives", "domain"], cells, left=(0, 1, 2)))
    if arrays:
        head = ["array function", "meaning", "adjoints of the operands"]
        click.echo(("\n" if rows else "") + table(head, list(arrays.values()), left=(0, 1, 2)))
