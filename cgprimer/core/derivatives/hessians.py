"""Second derivatives: the gradient's tape, differentiated once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cgprimer.core.derivatives.evaluation import chosen_names, chosen_output, kept, run, tape
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods import differentiate, methods
from cgprimer.core.methods.contract import DerivativeProgram, Names, Pass, Read
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import UsageError
from cgprimer.numbers_and_arrays import Value


def hessian(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    method: str = "forward-over-reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, dict[str, Value]]:
    """All second derivatives: ``hessian(graph, at)["ab"]["cd"]``.

    The gradient's tape is differentiated once more; no method has a rule for second derivatives.

    Args:
        graph, at, of, engine: as in :func:`gradient`.
        wrt: parameters, inputs or inner variables; all parameters unless given.
        method: ``OUTER-over-INNER`` with two of the methods, or one name for both. The inner one
            must give the gradient in one run, so finite differences can only be the outer one.
        options: of the outer method.

    Raises:
        UsageError: as for :func:`gradient`, and an inner method that needs several runs.

    >>> from cgprimer.core.graph import parse
    >>> hessian(parse("xw = xa^3*k"), {"xa": 2, "k": 5}, wrt=["xa", "k"])
    {'xa': {'xa': 60.0, 'k': 12.0}, 'k': {'xa': 12.0, 'k': 0.0}}
    """
    names = chosen_names(graph, wrt)
    target = chosen_output(graph, of)
    outer, _, inner = str(method).partition("-over-")

    def make() -> tuple[DerivativeProgram, dict[str, str]]:
        first, outputs = _gradient_tape(graph, target, names, inner or outer)
        of_all = tuple(outputs.values())
        return differentiate(first, of_all, names, method=outer, **options), outputs

    key = ("second", target, names, method, repr(sorted(options.items())))
    program, outputs = kept(graph, key, make)
    found = run(graph, at, program, engine)
    return {a: {b: found.derivatives[outputs[a], b] for b in names} for a in names}


def hessian_vector_product(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    vector: Mapping[str, float] | None = None,
    *,
    of: str | None = None,
    engine: str = "auto",
) -> dict[str, Value]:
    """The Hessian times a vector, in one pass and without the Hessian (forward over reverse).

    Args:
        graph, at, of, engine: as in :func:`gradient`.
        vector: a number for each name that belongs to the vector.

    Returns:
        The product's component for each name of the vector.

    Source: Pearlmutter 1994, "Fast exact multiplication by the Hessian".

    >>> from cgprimer.core.graph import parse
    >>> hessian_vector_product(parse("xw = xa^3*k"), {"xa": 2, "k": 5}, {"xa": 1, "k": 10})
    {'xa': 180.0, 'k': 12.0}
    """
    if not isinstance(vector, Mapping) or not vector:
        raise UsageError("a vector is needed: a number for each name", hint="vector={'ab': 1.0}")
    names = chosen_names(graph, tuple(vector))
    target = chosen_output(graph, of)

    def make() -> tuple[DerivativeProgram, dict[str, str]]:
        first, outputs = _gradient_tape(graph, target, names, "reverse")
        program = differentiate(first, of=tuple(outputs.values()), wrt=names, method="forward")
        # The passes seed one name each; the product leaves all seeds open and takes one pass.
        tangents = {read.of: read.output for read in program.passes[0].reads}
        reads = tuple(Read(outputs[name], name, tangents[outputs[name]]) for name in names)
        seeds = {
            run.reads[0].wrt: next(n for n, v in run.seeds.items() if v) for run in program.passes
        }
        return replace(program, passes=(Pass(reads),)), seeds

    program, seeds = kept(graph, ("product", target, names), make)
    try:
        direction = {seeds[name]: float(vector[name]) for name in names}
    except (TypeError, ValueError):
        raise UsageError("the components of the vector must be numbers") from None
    found = run(graph, at, program, engine, direction=direction)
    return {read.wrt: found.derivatives[read.of, read.wrt] for read in program.passes[0].reads}


def _gradient_tape(
    graph: ExpressionGraph, of: str, wrt: tuple[str, ...], method: str
) -> tuple[Tape, dict[str, str]]:
    """A tape whose outputs are the gradient, and what they are called."""
    if method not in methods() or method == "finite-difference":
        choices = [m for m in methods() if m != "finite-difference"]
        raise UsageError(
            f"{method!r} cannot be the inner method: it does not give the gradient in one run",
            hint=f"OUTER-over-INNER, the inner one of: {', '.join(choices)}",
        )
    inner = [name for name in wrt if name in graph.definitions]
    if inner and method == "symbolic":
        raise UsageError(
            f"symbolic formulas are written in inputs and parameters, so {inner[0]!r} cannot be"
            " moved in them a second time",
            hint="take another inner method: forward-over-reverse",
        )
    options = {"carry": True} if method == "forward" else {}
    program = differentiate(tape(graph), of, wrt, method=method, **options)
    outputs = {read.wrt: read.output for read in program.passes[0].reads}
    return replace(
        program.tape, outputs={o: program.tape.outputs[o] for o in outputs.values()}
    ), outputs
