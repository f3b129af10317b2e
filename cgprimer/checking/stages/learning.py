"""Stages 7 and 10: steps down the gradient, and a small network that learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cgprimer.checking.results import Failure, Part
from cgprimer.checking.sandbox import Request
from cgprimer.checking.stages.stage import Case, Stage, close, failed, right, wrong
from cgprimer.core.derivatives import tape as tape_of
from cgprimer.core.graph import parse
from cgprimer.core.methods import differentiate
from cgprimer.core.run import values_of

Move = Callable[[float, float, float, int], float]  # parameter, gradient, sum so far, step -> new


def descended(
    case: Case, rate: float, steps: int, move: Move | None = None, fixed: Sequence[str] = ()
) -> list[dict[str, float]]:
    """The point after each step of gradient descent, or of a rule that is not quite that.

    >>> descended(Case("y = p^2", {"p": 1}), 0.25, 2)
    [{'p': 0.5}, {'p': 0.25}]
    """
    program = differentiate(tape_of(case.graph), wrt=case.names, method="reverse")
    outputs = {read.wrt: read.output for read in program.passes[0].reads}
    at = {name: float(value) for name, value in case.at.items()}
    total = dict.fromkeys(at, 0.0)
    found = []
    for step in range(steps):
        values = values_of(program.tape, at | dict(program.passes[0].seeds))
        slopes = {n: values[program.tape.outputs[outputs[n]]] for n in case.names}
        for name, slope in slopes.items():
            if name in fixed:
                continue
            total[name] += slope
            at[name] = move(at[name], slope, total[name], step) if move else at[name] - rate * slope
        found.append(dict(at))
    return found


# --- 7: the optimizer -----------------------------------------------------------------------------

_BOWL = Case("y = (p - 3)^2 + p*q + q^2", {"p": 0.5, "q": -1.0})
_SLOPE = Case("y = p", {"p": 0.0})
_RATE, _STEPS, _DECAY = 0.1, 5, 0.9
_MOVES: dict[str, tuple[Move, str]] = {
    "sign": (lambda p, g, s, t: p + _RATE * g, "the parameters move up the gradient"),
    "rate ignored": (lambda p, g, s, t: p - g, "the rate is not used"),
    "rate applied twice": (lambda p, g, s, t: p - _RATE**2 * g, "the rate stands in two places"),
    "gradients add up": (lambda p, g, s, t: p - _RATE * s, "earlier gradients are in the step"),
    "gradient instead of a step": (lambda p, g, s, t: _RATE * g, "data becomes the step itself"),
    "parameters never moved": (lambda p, g, s, t: p, "data stay as they are: change them in the"
                               " values that were given, not in copies"),
}  # fmt: skip
_RATES: dict[str, tuple[Callable[[int], float], str]] = {
    "decay one step early": (lambda t: _RATE * _DECAY ** (t + 1), "the first step has the whole"
                             " rate"),
    "decay ignored": (lambda t: _RATE, "the rate stays the same"),
    "decay multiplied by the step": (lambda t: _RATE * _DECAY * t, "decay is raised to the number"
                                     " of the step"),
    "decay only once": (lambda t: _RATE * (_DECAY if t else 1), "the rate shrinks at every step"),
}  # fmt: skip


def _seventh(answers: Sequence[Any]) -> list[Part]:
    plain, decaying = answers
    parts = []
    name, points = "steps", 4
    if isinstance(plain, Failure):
        parts.append(failed(name, points, plain))
    else:
        rows = [dict(zip(_BOWL.names, row, strict=True)) for row in plain["rows"]]
        parts.append(_steps(name, points, rows))
    name, points = "decaying rate", 2
    if isinstance(decaying, Failure):
        return [*parts, failed(name, points, decaying)]
    found = [row[0] for row in decaying["rows"]]

    def places(rate: Callable[[int], float]) -> list[float]:
        return [-sum(rate(k) for k in range(t + 1)) for t in range(_STEPS)]

    if close(found, places(lambda t: _RATE * _DECAY**t)):
        return [*parts, right(name, points)]
    if close(found, [-one for one in places(lambda t: _RATE * _DECAY**t)]):
        return [*parts, wrong(name, points, "sign", _MOVES["sign"][1])]
    for mistake, (rate, says) in _RATES.items():
        if close(found, places(rate)):
            return [*parts, wrong(name, points, mistake, says)]
    says = "the rates are not rate*decay^t, t = 0, 1, 2 and so on"
    return [*parts, wrong(name, points, "", says)]


def _same(rows: Sequence[dict[str, Any]], expected: Sequence[dict[str, float]]) -> bool:
    return all(
        close(row[name], good[name])
        for row, good in zip(rows, expected, strict=True)
        for name in row
    )


def _steps(name: str, points: float, rows: Sequence[dict[str, Any]]) -> Part:
    if _same(rows, descended(_BOWL, _RATE, _STEPS)):
        return right(name, points)
    if any(isinstance(value, str) for row in rows for value in row.values()):
        says = "after a step, data is no number: compute with data, not with values"
        return wrong(name, points, "data is no number", says)
    for mistake, (move, says) in _MOVES.items():
        if _same(rows, descended(_BOWL, _RATE, _STEPS, move)):
            return wrong(name, points, mistake, says)
    for left_out in _BOWL.names:
        if _same(rows, descended(_BOWL, _RATE, _STEPS, fixed=[left_out])):
            says = "one of the parameters does not move"
            return wrong(name, points, "parameter left out", says)
    return wrong(name, points, "", "the parameters are not where gradient descent takes them")


OPTIMIZER = Stage(
    7,
    "optimizer",
    ("Value", "SGD"),
    (
        _BOWL.asked("descended", _RATE, _STEPS),
        _SLOPE.asked("descended", _RATE, _STEPS, _DECAY),
    ),
    _seventh,
    {"steps": 4, "decaying rate": 2},
)

# --- 10: a small network --------------------------------------------------------------------------

_TAUGHT = (  # the lecture's 4-2-1 network
    [[[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]], [[0.9, 0.35]]],
    [[0.05, 0.05], [0.07]],
    [[0.2, -0.4, 0.6, 0.8], [1.0, 0.5, -0.25, 0.75]],
)
_DISTINCT = (
    [[[0.15, -0.2], [0.25, 0.3]], [[0.4, -0.45], [0.5, 0.55]]],
    [[0.35, -0.1], [0.6, 0.05]],
    [[0.05, 0.1], [0.9, -0.6]],
)
_NIELSEN = ((0.6, 0.9), (2.0, 2.0))
_EPOCHS, _LEARNING = 300, 0.15


def network_text(
    weights: Sequence[Any], biases: Sequence[Any], function: str = "sigmoid", last: str = "sigmoid"
) -> str:
    """A network as statements of the language, biases included.

    >>> network_text([[[1.0, 2.0]]], [[0.5]])
    'x1_1 = sigmoid(w1_1_1*x0_1 + w1_1_2*x0_2 + b1_1)'
    """
    lines = []
    for layer, (rows, offsets) in enumerate(zip(weights, biases, strict=True), 1):
        outer = last if layer == len(weights) else function
        for unit, row in enumerate(rows, 1):
            terms = [f"w{layer}_{unit}_{k}*x{layer - 1}_{k}" for k in range(1, len(row) + 1)]
            total = " + ".join([*terms, f"b{layer}_{unit}"] if offsets else terms)
            lines.append(
                f"x{layer}_{unit} = {outer}({total})" if outer else f"x{layer}_{unit} = {total}"
            )
    return "\n".join(lines)


def _points(
    weights: Sequence[Any], biases: Sequence[Any], inputs: Sequence[float]
) -> dict[str, float]:
    at = {f"x0_{k}": value for k, value in enumerate(inputs, 1)}
    for layer, (rows, offsets) in enumerate(zip(weights, biases, strict=True), 1):
        for unit, (row, offset) in enumerate(zip(rows, offsets, strict=True), 1):
            at |= {f"w{layer}_{unit}_{k}": weight for k, weight in enumerate(row, 1)}
            at[f"b{layer}_{unit}"] = offset
    return at


def _outputs(text: str, network: Any) -> list[list[float]]:
    weights, biases, inputs = network
    names = [f"x{len(weights)}_{k}" for k in range(1, len(weights[-1]) + 1)]
    graph = parse(f"{text}\noutput {', '.join(names)}")
    rows = [graph.evaluate(_points(weights, biases, row)) for row in inputs]
    return [[float(row[name]) for name in names] for row in rows]


def _tenth(answers: Sequence[Any]) -> list[Part]:
    taught, distinct, *trained = answers
    parts = [_forward(taught, distinct), _parameters(distinct), _learned(trained)]
    if parts[0].verdict == "wrong":  # what follows from it is not named once more
        parts[1:] = [
            part
            if part.verdict == "right"
            else replace(part, mistake="", message="wrong, as the outputs are", evidence=())
            for part in parts[1:]
        ]
    return parts


def _forward(taught: Any, distinct: Any) -> Part:
    name, points = "outputs", 3
    for answer, network in ((taught, _TAUGHT), (distinct, _DISTINCT)):
        if isinstance(answer, Failure):
            return failed(name, points, answer)
        weights, biases, _ = network
        if close(answer["outputs"], _outputs(network_text(weights, biases), network)):
            continue
        others = {
            "no bias": network_text(weights, biases),
            "no activation": network_text(weights, biases, "", ""),
            "no activation at the output": network_text(weights, biases, last=""),
            "tanh instead of sigmoid": network_text(weights, biases, "tanh", "tanh"),
            "no activation inside": network_text(weights, biases, ""),
        }
        zero = [[0.0] * len(rows) for rows in weights]
        for mistake, text in others.items():
            used = (weights, zero, network[2]) if mistake == "no bias" else network
            if close(answer["outputs"], _outputs(text, used)):
                says = "each neuron gives sigmoid(sum of weight*input + bias)"
                return wrong(name, points, mistake, says)
        return wrong(name, points, "", "the outputs are not those of this network")
    return right(name, points)


def _parameters(answer: Any) -> Part:
    name, points = "parameters and their gradients", 3
    if isinstance(answer, Failure):
        return failed(name, points, answer)
    weights, biases, inputs = _DISTINCT
    case = Case(network_text(weights, biases) + "\noutput x2_1",
                _points(weights, biases, inputs[0]))  # fmt: skip
    wanted = {n: v for n, v in case.at.items() if not n.startswith("x")}
    if sorted(answer["parameters"], key=str) != sorted(wanted.values(), key=str):
        count = len(answer["parameters"])
        if count < len(wanted):
            says = f"{count} parameters: every weight and every bias is one"
            return wrong(name, points, "parameters missing", says)
        return wrong(name, points, "wrong parameters", "every weight and every bias, each once")
    by_name = dict(zip(case.names, case.gradient, strict=True))
    name_of = {value: n for n, value in wanted.items()}
    for value, grad in zip(answer["parameters"], answer["grads"], strict=True):
        good = by_name.get(name_of[value], 0.0)
        if not close(grad, good):
            says = "the gradient of the first output by its parameters is wrong"
            return wrong(name, points, "wrong gradients", says)
    return right(name, points)


def _learned(trained: Sequence[Any]) -> Part:
    name, points = "training", 4
    failure = next((one for one in trained if isinstance(one, Failure)), None)
    if failure:
        return failed(name, points, failure)

    def ends(loss: str, move: Move | None = None, fixed: Sequence[str] = ()) -> bool:
        for (w, b), answer in zip(_NIELSEN, trained, strict=True):
            case = Case(f"y = sigmoid(w*x + c); l = {loss}", {"w": w, "c": b, "x": 1.0})
            rows = descended(case, _LEARNING, _EPOCHS, move, ["x", *fixed])
            output = case.graph.evaluate({**rows[-1], "x": 1.0})["y"]
            if not close(answer["output"], float(output), 1e-8):
                return False
        return True

    if ends("y^2/2"):
        losses = [one["losses"] for one in trained]
        if not all(len(one) == _EPOCHS for one in losses):
            return wrong(name, points, "losses missing", "train returns the loss of every epoch")
        if any(isinstance(loss, str) for one in losses for loss in one):
            return wrong(name, points, "losses are no numbers", "a loss is data, not a value")
        if any(one[-1] >= one[0] for one in losses):
            return wrong(name, points, "wrong losses", "the losses that are returned do not fall")
        return right(name, points)
    checks: list[tuple[str, str, Callable[[], bool]]] = [
        ("gradients not zeroed", "the gradients of earlier epochs are still there",
         lambda: ends("y^2/2", lambda p, g, s, t: p - _LEARNING * s)),
        ("sign", "the parameters move up the gradient",
         lambda: ends("y^2/2", lambda p, g, s, t: p + _LEARNING * g)),
        ("factor 2", "the loss is half the square of the error", lambda: ends("y^2")),
        ("error not squared", "the loss is half the square of the error", lambda: ends("y")),
        ("another loss", "this is cross-entropy: the loss is half the square of the error",
         lambda: ends("-log(1 - y)")),
        ("bias not trained", "the bias stays as it is", lambda: ends("y^2/2", fixed=["c"])),
        ("weights not trained", "the weights stay as they are",
         lambda: ends("y^2/2", fixed=["w"])),
        ("parameters never moved", "the network is what it was before",
         lambda: ends("y^2/2", fixed=["c", "w"])),
    ]  # fmt: skip
    for mistake, says, test in checks:
        if test():
            return wrong(name, points, mistake, says)
    return wrong(name, points, "", f"after {_EPOCHS} epochs the network is not where it should be")


def _training(w: float, b: float) -> Request:
    data = [[[1.0], [0.0]]]
    return {"call": "trained", "arguments": [[[[w]]], [[b]], data, _LEARNING, _EPOCHS]}


NETWORK = Stage(
    10,
    "small network",
    ("Value", "Network", "train"),
    (
        {"call": "network", "arguments": list(_TAUGHT)},
        {"call": "network", "arguments": list(_DISTINCT)},
        *(_training(*start) for start in _NIELSEN),
    ),
    _tenth,
    {"outputs": 3, "parameters and their gradients": 3, "training": 4},
)
