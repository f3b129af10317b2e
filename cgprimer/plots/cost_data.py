"""What a gradient costs, against the number of parameters, for each method.

Reverse mode takes a few times the operations of the function itself, whatever the number of
parameters (the cheap-gradient principle); forward mode and finite differences take a pass for
each parameter.

Source: Griewank and Walther, "Evaluating Derivatives" (2008), section 4.6.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cgprimer.analysis.whole_numbers import as_counts
from cgprimer.core.derivatives import tape as tape_of
from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.methods import differentiate
from cgprimer.core.methods import methods as all_methods
from cgprimer.core.methods.contract import DerivativeProgram, Names, as_names
from cgprimer.core.run import Runner
from cgprimer.errors import (
    DifferentiationError,
    ExpressionSwellError,
    PathLimitError,
    UsageError,
    name_hint,
)

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
BOUND = 5.0  # times the function's own operations: Griewank and Walther's constant
_REPEATS = 5
_MOST_SYMBOLIC = (
    256  # parameters, unless it is asked for: sympy takes ten seconds for twice as many
)


def sum_graph(size: int) -> ExpressionGraph:
    """A sum of sines with a weight each: as many parameters as terms.

    >>> print(sum_graph(2).expression("xw"))
    sin(w1*xa) + sin(w2*xa)
    """
    return parse("xw = " + " + ".join(f"sin(w{k}*xa)" for k in range(1, size + 1)))


def neuron_graph(size: int) -> ExpressionGraph:
    """One neuron with a weight for each of its inputs.

    >>> print(neuron_graph(2).expression("xw"))
    tanh(w1*x1 + w2*x2)
    """
    terms = " + ".join(f"w{k}*x{k}" for k in range(1, size + 1))
    return parse(f"xw = tanh({terms})")


def network_graph(size: int) -> ExpressionGraph:
    """A network with two inputs, one hidden layer of `size` neurons and one output.

    >>> len(network_graph(3).parameters)
    12
    """
    hidden = [f"xh{k} = tanh(u{k}*x1 + v{k}*x2 + b{k})" for k in range(1, size + 1)]
    out = " + ".join(f"w{k}*xh{k}" for k in range(1, size + 1))
    return parse("\n".join([*hidden, f"xw = {out}"]))


FAMILIES: dict[str, Callable[[int], ExpressionGraph]] = {
    "network": network_graph,
    "neuron": neuron_graph,
    "sum": sum_graph,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What the whole gradient of one graph costs with one method; `seconds` is nan unless timed."""

    parameters: int
    operations: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CostGrowth:
    """Costs over a family of graphs.

    Attributes:
        family: its name.
        primal: the cost of the function itself.
        methods: for each method its costs, one per size, as far as the method goes.
        refused: for each method that ends earlier, why, in two or three words.
    """

    family: str
    primal: tuple[Cost, ...]
    methods: dict[str, tuple[Cost, ...]]
    refused: dict[str, str]

    @property
    def timed(self) -> bool:
        """Whether the costs have times."""
        return all(math.isfinite(cost.seconds) for cost in self.primal)


def cost_growth(
    family: str = "network",
    sizes: int | Sequence[int] = SIZES,
    *,
    methods: Names = (),
    timed: bool = False,
) -> CostGrowth:
    """Operations, and times, of the gradient for each method over a family of graphs.

    Args:
        family: ``network`` (hidden neurons), ``neuron`` (inputs) or ``sum`` (terms).
        sizes: how many of these: a number or several.
        methods: which method or methods; all unless given, symbolic then up to 256 parameters,
            beyond which it takes long.
        timed: run each program too, and take the least time of five runs on one sample.

    Raises:
        UsageError: an unknown family or method, or a size that is not positive.

    >>> growth = cost_growth("sum", [1, 10], methods=["forward", "reverse"])
    >>> [cost.operations for cost in growth.primal]
    [2, 29]
    >>> {name: [cost.operations for cost in costs] for name, costs in growth.methods.items()}
    {'forward': [5, 680], 'reverse': [4, 49]}
    """
    if family not in FAMILIES:
        raise UsageError(f"there is no family {family!r}", hint=name_hint(family, FAMILIES))
    counts = as_counts(sizes, "sizes")
    known = all_methods()
    chosen = as_names(methods, "methods") if methods else ()
    for name in chosen:
        if name not in known:
            raise UsageError(f"there is no method {name!r}", hint=name_hint(name, known))
    primal: list[Cost] = []
    costs: dict[str, list[Cost]] = {name: [] for name in chosen or known}
    refused: dict[str, str] = {}
    for size in sorted(set(counts)):
        graph = FAMILIES[family](size)
        tape = tape_of(graph)
        count = len(graph.parameters)
        function = DerivativeProgram("none", tape, tuple(tape.outputs), (), ())
        primal.append(Cost(count, len(tape), _seconds(function, graph) if timed else math.nan))
        for name, found in costs.items():
            if name in refused:
                continue
            if name == "symbolic" and count > _MOST_SYMBOLIC and not chosen:
                refused[name] = "slow beyond"
                continue
            try:
                program = differentiate(tape, method=name)
            except DifferentiationError as error:
                refused[name] = _reason(error)
                continue
            seconds = _seconds(program, graph) if timed else math.nan
            found.append(Cost(count, program.operation_count, seconds))
    made = {name: tuple(found) for name, found in costs.items()}
    return CostGrowth(family, tuple(primal), made, refused)


def _reason(error: DifferentiationError) -> str:
    """Why a method refuses a graph, as short as a legend."""
    if isinstance(error, PathLimitError):
        return "too many paths beyond"
    return "too large beyond" if isinstance(error, ExpressionSwellError) else "refused beyond"


def _seconds(program: DerivativeProgram, graph: ExpressionGraph) -> float:
    """The least time of a few runs on one sample."""
    runner = Runner(program)
    random = np.random.default_rng(0)
    columns = {name: random.random(1) for name in graph.inputs}
    scalars = {name: float(random.random()) for name in graph.parameters}
    best = math.inf
    for _ in range(_REPEATS):
        start = time.perf_counter()
        if program.passes:
            runner(columns, scalars, 1)
        else:
            runner.execute(columns, scalars, 1)
        best = min(best, time.perf_counter() - start)
    return best
