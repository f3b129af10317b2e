"""Graphs that nobody types: networks, chains, polynomials, recurrent units, random graphs.

Every function returns a graph; the text that it was parsed from, to be read and edited, is its
``source.text``. Inputs and parameters have values, so that the graph can be evaluated, traced and
drawn at once, and trained on data made from these values. By default the values are numbers,
determined by a seed and rounded to two digits after the point. With ``values=False`` the text has
initializers instead: ``parameter W1[32,16] = glorot``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

from cgprimer.checked_numbers import whole_number
from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.primitives import primitives
from cgprimer.core.primitives.notation import number_text
from cgprimer.errors import UsageError, name_hint
from cgprimer.wrong_kinds import explained

_MOST = 100_000  # parameters: a text of more has better ways to be made
_POOL = ("tanh", "sin", "sigmoid", "cos")  # of random graphs: defined everywhere, and bounded
_FRESH = 0.7  # of a random graph's operands: the others are used once more
_WIDTH = 96  # letters of a line
_RECTIFIERS = ("relu", "leaky_relu", "gelu")
ARRAY_ACTIVATIONS = ("softmax", "log_softmax")  # of a whole layer, not of each unit


@explained
def mlp(
    sizes: str | Sequence[int],
    *,
    activation: str = "tanh",
    output: str = "none",
    bias: bool = True,
    scalars: bool = False,
    seed: int = 0,
    values: bool = True,
) -> ExpressionGraph:
    """A multilayer perceptron, every unit joined to every unit of the layer before.

    Args:
        sizes: units per layer, the inputs first: ``"4-2-1"`` or ``[4, 2, 1]``.
        activation: a function of one number, for every hidden unit; ``none`` for none.
        output: the same for the last layer; ``softmax`` and ``log_softmax`` of all its units, too.
        bias: whether every unit adds a parameter of its own.
        scalars: a line and a name for each unit, instead of matrices: what a slide can show.
        seed: of the values. Weights are uniform within the root of three over the number of a
            unit's operands, so that their variance is one over it; biases within 0.1.
        values: whether numbers are written. If not, weights are declared ``glorot`` (``he`` before
            a rectifier), biases ``zeros`` and inputs ``uniform(-1, 1)``; the seed has no effect.

    Raises:
        UsageError: the sizes are none, or there is no such function.

    Source: Rumelhart, Hinton, Williams 1986, "Learning representations by back-propagating
    errors"; the range of the weights: LeCun et al. 1998, "Efficient BackProp", section 4.6.

    >>> print(mlp("2-2-1", activation="sigmoid").source.text)
    input x[2] = [0.69, 0.52]
    parameter W1[2,2] = [[-0.19, -0.59], [0.03, -0.23]], b1[2] = [0.06, -0.04]
    parameter W2[1,2] = [[-0.06, 0.2]], b2[1] = 0.08
    xh1 = sigmoid(W1 @ x + b1)
    xo = W2 @ xh1 + b2
    output xo
    >>> print(mlp("2-3-1", values=False).source.text)
    input x[2] = uniform(-1, 1)
    parameter W1[3,2] = glorot, b1[3] = zeros
    parameter W2[1,3] = glorot, b2[1] = zeros
    xh1 = tanh(W1 @ x + b1)
    xo = W2 @ xh1 + b2
    output xo
    >>> print(mlp([2, 1], output="sigmoid", bias=False, scalars=True).source.text)
    input x1 = 0.69, x2 = 0.52
    parameter w1_1 = -0.19, w1_2 = -0.59
    xo = sigmoid(w1_1*x1 + w1_2*x2)
    output xo
    """
    layers = _sizes(sizes)
    draw = Random(whole_number("the seed", seed))
    functions = [_activation(activation)] * (len(layers) - 2) + [_activation(output, scalars)]
    count = sum((before + bias) * own for before, own in pairwise(layers))
    if count > _MOST and (values or scalars):
        hint = "write initializers: values=False and scalars=False (without --values, --scalars)"
        raise UsageError(f"the network has {count:,} parameters, more than {_MOST:,}", hint=hint)
    if values:
        weights, added = _sampled_layers(draw, layers, bias)
    else:
        weights, added = _initialized_layers(layers, functions, bias, scalars)
    write = _units if scalars else _matrices
    return _graph(write(layers, functions, weights, added), f"mlp {'-'.join(map(str, layers))}")


@explained
def neuron(
    inputs: int,
    *,
    activation: str = "sigmoid",
    bias: bool = True,
    seed: int = 0,
    values: bool = True,
) -> ExpressionGraph:
    """One neuron: a weighted sum of its inputs, and a function of it.

    >>> print(neuron(2).source.text)
    input x1 = 0.69, x2 = 0.52
    parameter w1 = -0.19, w2 = -0.59, b = 0.0
    xo = sigmoid(w1*x1 + w2*x2 + b)
    output xo
    """
    draw, many = Random(whole_number("the seed", seed)), _count("inputs", inputs)
    function = _activation(activation)
    value = partial(_scalar, draw, values=values)
    given = {f"x{k}": value(1.0) for k in range(1, many + 1)}
    most = math.sqrt(3 / many)
    weights = {f"w{k}": value(most) for k in range(1, many + 1)}
    weights |= {"b": value(0.1) if values else "zeros"} if bias else {}
    total = _sum([f"w{k}*x{k}" for k in range(1, many + 1)], ["b"] * bias)
    return _graph(
        [*_declared("input", given), *_declared("parameter", weights),
         f"xo = {function.format(total)}", "output xo"], f"neuron of {many} inputs",
    )  # fmt: skip


@explained
def chain(
    length: int, *, activation: str = "tanh", seed: int = 0, values: bool = True
) -> ExpressionGraph:
    """A chain, each value a function of a parameter times the one before.

    What a gradient has to go through: products of as many factors as the chain is long.

    >>> print(chain(2).source.text)
    input x0 = 0.69
    parameter w1 = 0.52, w2 = -0.16
    x1 = tanh(w1*x0)
    x2 = tanh(w2*x1)
    output x2
    """
    draw, many = Random(whole_number("the seed", seed)), _count("values", length)
    function = _activation(activation)
    value = partial(_scalar, draw, 1.0, values=values)
    lines = _declared("input", {"x0": value()})
    lines += _declared("parameter", {f"w{k}": value() for k in range(1, many + 1)})
    lines += [f"x{k} = {function.format(f'w{k}*x{k - 1}')}" for k in range(1, many + 1)]
    return _graph([*lines, f"output x{many}"], f"chain of {many}")


@explained
def polynomial(degree: int, *, seed: int = 0, values: bool = True) -> ExpressionGraph:
    """A polynomial in one input; its coefficients are the parameters.

    >>> print(polynomial(2).source.text)
    input x = 0.69
    parameter a0 = 0.52, a1 = -0.16, a2 = -0.48
    xo = a0 + a1*x + a2*x^2
    output xo
    """
    draw, highest = Random(whole_number("the seed", seed)), whole_number("the degree", degree)
    value = partial(_scalar, draw, 1.0, values=values)
    lines = _declared("input", {"x": value()})
    lines += _declared("parameter", {f"a{k}": value() for k in range(highest + 1)})
    powers = ["", "*x", *(f"*x^{k}" for k in range(2, highest + 1))]
    total = _sum([f"a{k}{powers[k]}" for k in range(highest + 1)])
    return _graph([*lines, f"xo = {total}", "output xo"], f"polynomial of degree {highest}")


@explained
def recurrent(
    steps: int, *, activation: str = "tanh", seed: int = 0, values: bool = True
) -> ExpressionGraph:
    """A recurrent unit, unrolled: the same two parameters in each of its steps.

    Source: Werbos 1990, "Backpropagation through time: what it does and how to do it".

    >>> print(recurrent(2).source.text)
    input x1 = 0.69, x2 = 0.52
    parameter w = -0.16, u = -0.48
    xh1 = tanh(u*x1)
    xh2 = tanh(w*xh1 + u*x2)
    output xh2
    """
    draw, many = Random(whole_number("the seed", seed)), _count("steps", steps)
    function = _activation(activation)
    value = partial(_scalar, draw, 1.0, values=values)
    lines = _declared("input", {f"x{k}": value() for k in range(1, many + 1)})
    lines += _declared("parameter", {name: value() for name in "wu"})
    lines.append(f"xh1 = {function.format('u*x1')}")
    for k in range(2, many + 1):
        lines.append(f"xh{k} = {function.format(f'w*xh{k - 1} + u*x{k}')}")
    return _graph([*lines, f"output xh{many}"], f"recurrent unit of {many} steps")


@explained
def random(
    expressions: int, *, inputs: int = 2, seed: int = 0, values: bool = True
) -> ExpressionGraph:
    """A graph of so many expressions drawn from a seed; all of them lead to the only output.

    It is defined everywhere and its values stay small, so that all methods agree on it.

    >>> print(random(4, seed=3).source.text)
    input x1 = -0.52, x2 = 0.09
    parameter a = -0.91, b = 0.56
    xv1 = cos(a*x1 + x2)
    xv2 = sin(b*xv1 + xv1)
    xv3 = xv2*sin(x2)
    xo = x1*sin(xv3) + xv3
    output xo
    """
    draw, many = Random(whole_number("the seed", seed)), _count("expressions", expressions)
    names = [f"x{k}" for k in range(1, _count("inputs", inputs) + 1)]
    value = partial(_scalar, draw, 1.0, values=values)
    given = {name: value() for name in names}
    parameters: list[str] = []
    waiting, operands, lines = names[:], names[:], list[str]()

    def operand() -> str:  # mostly one that nothing uses yet, so that few are left at the end
        if waiting and draw.random() < _FRESH:
            return waiting.pop(draw.randrange(len(waiting)))
        return draw.choice(operands)

    def parameter() -> str:
        parameters.append(_letters(len(parameters)))
        return parameters[-1]

    forms = (
        lambda: f"{parameter()}*{operand()} + {parameter()}",
        lambda: f"{parameter()}*{operand()}",
        lambda: f"{draw.choice(_POOL)}({parameter()}*{operand()} + {operand()})",
        lambda: f"{operand()}*{draw.choice(_POOL)}({operand()})",
    )
    for k in range(1, many + 1):
        last = k == many
        text = forms[draw.randrange(len(forms))]()
        if last and waiting:
            text = " + ".join([text, *waiting])
        name = "xo" if last else f"xv{k}"
        lines.append(f"{name} = {text}")
        waiting.append(name)
        operands.append(name)
    declared = _declared("input", given)
    declared += _declared("parameter", {name: value() for name in parameters})
    return _graph([*declared, *lines, "output xo"], f"random graph of {many}")


# --- writing -------------------------------------------------------------------------------------


def _sampled_layers(draw: Random, layers: list[int], bias: bool) -> tuple[list[Any], list[Any]]:
    """Return numbers for the weights of each layer, and for the inputs and the layers' biases."""
    added, weights = [[_number(draw, 1.0) for _ in range(layers[0])]], []
    for before, own in pairwise(layers):
        most = math.sqrt(3 / before)
        weights.append([[_number(draw, most) for _ in range(before)] for _ in range(own)])
        added.append([_number(draw, 0.1) for _ in range(own)] if bias else [])
    return weights, added


def _initialized_layers(
    layers: list[int], functions: list[str], bias: bool, scalars: bool
) -> tuple[list[Any], list[Any]]:
    """Return initializers for the weights of each layer, and for the inputs and the biases.

    With `scalars` there is an initializer for each number. A scalar has no sizes from which
    ``glorot`` and ``he`` could be computed, so that their bounds are written as numbers.
    """
    added: list[Any] = ["uniform(-1, 1)", *(["zeros" if bias else ""] * (len(layers) - 1))]
    weights: list[Any] = [_law_of_weights(function) for function in functions]
    if not scalars:
        return weights, added
    for k, (before, own) in enumerate(pairwise(layers)):
        if weights[k] == "he":
            law = f"normal({number_text(round(math.sqrt(2 / before), 2))})"
        else:
            law = _uniform(math.sqrt(6 / (before + own)))
        weights[k] = [[law] * before] * own
    return weights, [[law] * n * bool(law) for law, n in zip(added, layers, strict=True)]


def _law_of_weights(function: str) -> str:
    """Return the initializer for weights before an activation."""
    return "he" if function.partition("(")[0] in _RECTIFIERS else "glorot"


def _matrices(
    layers: list[int], functions: list[str], weights: list[Any], values: list[Any]
) -> list[str]:
    """The lines of a network with a matrix for each layer."""
    lines, last, passed = [f"input x[{layers[0]}] = {_value(values[0])}"], len(layers) - 1, "x"
    made = []
    for k in range(1, len(layers)):
        parts = [f"W{k}[{layers[k]},{layers[k - 1]}] = {_value(weights[k - 1])}"]
        parts += [f"b{k}[{layers[k]}] = {_value(values[k])}"] if values[k] else []
        lines.append(f"parameter {', '.join(parts)}")
        total, name = f"W{k} @ {passed}" + f" + b{k}" * bool(values[k]), f"xh{k}"
        passed = "xo" if k == last else name
        made.append(f"{passed} = {functions[k - 1].format(total)}")
    return [*lines, *made, "output xo"]


def _units(
    layers: list[int], functions: list[str], weights: list[Any], values: list[Any]
) -> list[str]:
    """The lines of a network with a name for each unit and each weight."""
    passed = [f"x{k}" for k in range(1, layers[0] + 1)]
    lines, made = _declared("input", dict(zip(passed, values[0], strict=True))), []
    for k in range(1, len(layers)):
        own, several = [], layers[k] > 1
        for unit in range(1, layers[k] + 1):
            ending = f"_{unit}" if several else ""
            names = [f"w{k}{ending}_{j}" for j in range(1, len(passed) + 1)]
            drawn = dict(zip(names, weights[k - 1][unit - 1], strict=True))
            biases = [f"b{k}{ending}"] if values[k] else []
            drawn |= dict(zip(biases, values[k][unit - 1 : unit], strict=True))
            lines += _declared("parameter", drawn)
            terms = [f"{w}*{name}" for w, name in zip(names, passed, strict=True)]
            own.append(("xo" if k == len(layers) - 1 else f"xh{k}") + ending)
            made.append(f"{own[-1]} = {functions[k - 1].format(_sum(terms, biases))}")
        passed = own
    return [*lines, *made, f"output {', '.join(passed)}"]


def _declared(kind: str, values: Mapping[str, float | str]) -> list[str]:
    """Declarations, as many in a line as there is room for."""
    lines: list[str] = []
    for name, value in values.items():
        part = f"{name} = {value}"
        if lines and len(lines[-1]) + len(part) + 2 <= _WIDTH:
            lines[-1] += f", {part}"
        else:
            lines.append(f"{kind} {part}")
    return lines


def _value(numbers: Any) -> str:
    """Return the text of an initializer or of a nested list; of one number only the number."""
    if isinstance(numbers, str):
        return numbers
    return str(numbers[0] if numbers[1:] == [] and isinstance(numbers[0], float) else numbers)


def _sum(terms: Sequence[str], more: Sequence[str] = ()) -> str:
    return " + ".join([*terms, *more])


def _letters(number: int) -> str:
    """``a``, ``b``, ..., without x, with which variables begin: ``w``, ``y``, ``z``, ``a1``..."""
    letters = "abcdefghijklmnopqrstuvwyz"
    again, place = divmod(number, len(letters))
    return letters[place] + (str(again) if again else "")


def _scalar(draw: Random, most: float, *, values: bool) -> float | str:
    """Return a number within bounds, or without `values` the initializer for it.

    A number is taken from the generator in both cases, so that what follows is the same.
    """
    number = _number(draw, most)
    return number if values else _uniform(most)


def _uniform(limit: float) -> str:
    bound = number_text(round(limit, 2))
    return f"uniform(-{bound}, {bound})"


def _number(draw: Random, most: float) -> float:
    return round(draw.uniform(-most, most), 2) + 0.0  # no negative zero


def _graph(lines: list[str], name: str) -> ExpressionGraph:
    return parse("\n".join(lines), name=f"<{name}>")


def _sizes(given: str | Sequence[int]) -> list[int]:
    parts: Sequence[Any] = given.split("-") if isinstance(given, str) else given
    try:
        found = [int(part) for part in parts]
    except (TypeError, ValueError):
        found = []
    if len(found) < 2 or min(found) < 1:
        hint = "units per layer, the inputs first, as in 4-2-1"
        raise UsageError(f"{given!r} are no sizes of a network", hint=hint)
    return found


def _count(what: str, given: Any) -> int:
    return whole_number(f"the number of {what}", given, least=1)


def _activation(name: str, scalars: bool = True) -> str:
    """How an activation is applied: a text with a place for its operand."""
    if name == "none":
        return "{}"
    known = [row.name for row in primitives() if row.arity == 1 and row.name != "neg"]
    if name in known or (name in ARRAY_ACTIVATIONS and not scalars):
        return f"{name}({{}})"
    if name in ARRAY_ACTIVATIONS:
        raise UsageError(f"{name} is of a whole layer, in the last layer of an mlp with matrices")
    hint = name_hint(name, ["none", *known])
    raise UsageError(f"there is no activation {name!r}", hint=hint)
