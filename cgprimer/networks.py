"""Generated graphs: networks, chains, polynomials, recurrent units, random graphs.

Every function returns a graph, whose text is its ``source.text``. Inputs and parameters have
declared values, so that the graph can be evaluated, traced, drawn, and trained on data generated
from these values. By default the values are numbers, determined by a seed and rounded to two
decimals. With ``values=False`` the text has initializers instead:
``parameter W1[32,16] = glorot``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

from cgprimer.core.operations import primitives
from cgprimer.errors import UsageError, name_hint
from cgprimer.expressions import ExpressionGraph, number_text, parse
from cgprimer.support.type_checks import check_boolean
from cgprimer.support.validation import check_integer

_MAX_PARAMETERS = 100_000  # of a text with a number for each parameter
_BOUNDED = ("tanh", "sin", "sigmoid", "cos")  # functions of random graphs: defined everywhere
_UNUSED_SHARE = 0.7  # of operands of random graphs: variables that nothing uses yet
_WIDTH = 96  # characters of a line
_RECTIFIERS = ("relu", "leaky_relu", "gelu")
ARRAY_ACTIVATIONS = ("softmax", "log_softmax")  # applied to a layer, not to each unit


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
    """Build a multilayer perceptron; each unit is connected to all units of the previous layer.

    Args:
        sizes: units per layer, starting with the inputs: ``"4-2-1"`` or ``[4, 2, 1]``.
        activation: elementwise activation of the hidden layers; ``none`` for a linear layer.
        output: activation of the last layer; also ``softmax`` or ``log_softmax``.
        bias: whether each unit has a bias.
        scalars: whether each unit has a line and a name, instead of a matrix for each layer.
        seed: random seed. Weights are uniform in ±sqrt(3/n) for n inputs of a unit, so that their
            variance is 1/n; biases are uniform in ±0.1.
        values: whether values are numbers. If not, weights are declared ``glorot`` (``he`` before
            a rectifier), biases ``zeros`` and inputs ``uniform(-1, 1)``; the seed has no effect.

    Raises:
        UsageError: invalid sizes, or an unknown activation.

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
    layers, bias = _check_sizes(sizes), check_boolean("bias", bias)
    generator = Random(check_integer("the seed", seed))
    functions = [_format_activation(activation)] * (len(layers) - 2) + [
        _format_activation(output, scalars)
    ]
    if values or scalars:
        _check_parameter_count(layers, bias)
    if values:
        weights, vectors = _sample_layers(generator, layers, bias)
    else:
        weights, vectors = _initialize_layers(layers, functions, bias, scalars)
    write = _format_unit_lines if scalars else _format_matrix_lines
    return _parse_graph(
        write(layers, functions, weights, vectors), f"mlp {'-'.join(map(str, layers))}"
    )


def neuron(
    inputs: int,
    *,
    activation: str = "sigmoid",
    bias: bool = True,
    seed: int = 0,
    values: bool = True,
) -> ExpressionGraph:
    """Build one neuron: an activation applied to a weighted sum of its inputs.

    >>> print(neuron(2).source.text)
    input x1 = 0.69, x2 = 0.52
    parameter w1 = -0.19, w2 = -0.59, b = 0.0
    xo = sigmoid(w1*x1 + w2*x2 + b)
    output xo
    """
    generator, n = Random(check_integer("the seed", seed)), _check_count("inputs", inputs)
    function, bias = _format_activation(activation), check_boolean("bias", bias)
    value = partial(_sample_scalar, generator, values=values)
    variables = {f"x{k}": value(1.0) for k in range(1, n + 1)}
    limit = math.sqrt(3 / n)
    weights = {f"w{k}": value(limit) for k in range(1, n + 1)}
    weights |= {"b": value(0.1) if values else "zeros"} if bias else {}
    total = _format_sum([f"w{k}*x{k}" for k in range(1, n + 1)], ["b"] * bias)
    lines = [*_format_declarations("input", variables), *_format_declarations("parameter", weights)]
    lines += [f"xo = {function.format(total)}", "output xo"]
    return _parse_graph(lines, f"neuron of {n} inputs")


def chain(
    length: int, *, activation: str = "tanh", seed: int = 0, values: bool = True
) -> ExpressionGraph:
    """Build a chain: each value is an activation of a parameter times the previous value.

    Its gradient is a product with one factor per value, so that it can vanish or explode.

    >>> print(chain(2).source.text)
    input x0 = 0.69
    parameter w1 = 0.52, w2 = -0.16
    x1 = tanh(w1*x0)
    x2 = tanh(w2*x1)
    output x2
    """
    generator, n = Random(check_integer("the seed", seed)), _check_count("values", length)
    function = _format_activation(activation)
    value = partial(_sample_scalar, generator, 1.0, values=values)
    lines = _format_declarations("input", {"x0": value()})
    lines += _format_declarations("parameter", {f"w{k}": value() for k in range(1, n + 1)})
    lines += [f"x{k} = {function.format(f'w{k}*x{k - 1}')}" for k in range(1, n + 1)]
    return _parse_graph([*lines, f"output x{n}"], f"chain of {n}")


def polynomial(degree: int, *, seed: int = 0, values: bool = True) -> ExpressionGraph:
    """Build a polynomial in one input; its coefficients are the parameters.

    >>> print(polynomial(2).source.text)
    input x = 0.69
    parameter a0 = 0.52, a1 = -0.16, a2 = -0.48
    xo = a0 + a1*x + a2*x^2
    output xo
    """
    generator, n = Random(check_integer("the seed", seed)), check_integer("the degree", degree)
    value = partial(_sample_scalar, generator, 1.0, values=values)
    lines = _format_declarations("input", {"x": value()})
    lines += _format_declarations("parameter", {f"a{k}": value() for k in range(n + 1)})
    powers = ["", "*x", *(f"*x^{k}" for k in range(2, n + 1))]
    total = _format_sum([f"a{k}{powers[k]}" for k in range(n + 1)])
    return _parse_graph([*lines, f"xo = {total}", "output xo"], f"polynomial of degree {n}")


def recurrent(
    steps: int, *, activation: str = "tanh", seed: int = 0, values: bool = True
) -> ExpressionGraph:
    """Build an unrolled recurrent unit; all steps share two parameters.

    Source: Werbos 1990, "Backpropagation through time: what it does and how to do it".

    >>> print(recurrent(2).source.text)
    input x1 = 0.69, x2 = 0.52
    parameter w = -0.16, u = -0.48
    xh1 = tanh(u*x1)
    xh2 = tanh(w*xh1 + u*x2)
    output xh2
    """
    generator, n = Random(check_integer("the seed", seed)), _check_count("steps", steps)
    function = _format_activation(activation)
    value = partial(_sample_scalar, generator, 1.0, values=values)
    lines = _format_declarations("input", {f"x{k}": value() for k in range(1, n + 1)})
    lines += _format_declarations("parameter", {name: value() for name in "wu"})
    lines.append(f"xh1 = {function.format('u*x1')}")
    for k in range(2, n + 1):
        lines.append(f"xh{k} = {function.format(f'w*xh{k - 1} + u*x{k}')}")
    return _parse_graph([*lines, f"output xh{n}"], f"recurrent unit of {n} steps")


def random(
    expressions: int, *, inputs: int = 2, seed: int = 0, values: bool = True
) -> ExpressionGraph:
    """Build a random graph with a number of expressions, which all lead to the only output.

    Its functions are bounded and defined everywhere, so that all methods agree on its derivatives.

    >>> print(random(4, seed=3).source.text)
    input x1 = -0.52, x2 = 0.09
    parameter a = -0.91, b = 0.56
    xv1 = cos(a*x1 + x2)
    xv2 = sin(b*xv1 + xv1)
    xv3 = xv2*sin(x2)
    xo = x1*sin(xv3) + xv3
    output xo
    """
    generator, n = Random(check_integer("the seed", seed)), _check_count("expressions", expressions)
    names = [f"x{k}" for k in range(1, _check_count("inputs", inputs) + 1)]
    value = partial(_sample_scalar, generator, 1.0, values=values)
    variables = {name: value() for name in names}
    parameters: list[str] = []
    unused, operands, lines = names[:], names[:], list[str]()

    def choose_operand() -> str:
        """Return a random operand: mostly an unused variable, so that few are left at the end."""
        if unused and generator.random() < _UNUSED_SHARE:
            return unused.pop(generator.randrange(len(unused)))
        return generator.choice(operands)

    def add_parameter() -> str:
        """Append a parameter and return its name."""
        parameters.append(_name_parameter(len(parameters)))
        return parameters[-1]

    forms = (
        lambda: f"{add_parameter()}*{choose_operand()} + {add_parameter()}",
        lambda: f"{add_parameter()}*{choose_operand()}",
        lambda: (
            f"{generator.choice(_BOUNDED)}"
            f"({add_parameter()}*{choose_operand()} + {choose_operand()})"
        ),
        lambda: f"{choose_operand()}*{generator.choice(_BOUNDED)}({choose_operand()})",
    )
    for k in range(1, n + 1):
        last = k == n
        text = forms[generator.randrange(len(forms))]()
        if last and unused:
            text = " + ".join([text, *unused])
        name = "xo" if last else f"xv{k}"
        lines.append(f"{name} = {text}")
        unused.append(name)
        operands.append(name)
    declared = _format_declarations("input", variables)
    declared += _format_declarations("parameter", {name: value() for name in parameters})
    return _parse_graph([*declared, *lines, "output xo"], f"random graph of {n}")


# --- text ----------------------------------------------------------------------------------------


def _check_parameter_count(layers: list[int], bias: bool) -> None:
    """Raise UsageError if a network has too many parameters to write their values as text."""
    count = sum((inputs + bias) * units for inputs, units in pairwise(layers))
    if count > _MAX_PARAMETERS:
        message = f"the network has {count:,} parameters, more than {_MAX_PARAMETERS:,}"
        hint = "write initializers: values=False and scalars=False (without --values, --scalars)"
        raise UsageError(message, hint=hint)


def _sample_layers(generator: Random, layers: list[int], bias: bool) -> tuple[list[Any], list[Any]]:
    """Sample values of the weights of each layer, and of the inputs and the biases."""
    vectors, weights = [[_sample_number(generator, 1.0) for _ in range(layers[0])]], []
    for inputs, units in pairwise(layers):
        limit = math.sqrt(3 / inputs)
        weights.append(
            [[_sample_number(generator, limit) for _ in range(inputs)] for _ in range(units)]
        )
        vectors.append([_sample_number(generator, 0.1) for _ in range(units)] if bias else [])
    return weights, vectors


def _initialize_layers(
    layers: list[int], functions: list[str], bias: bool, scalars: bool
) -> tuple[list[Any], list[Any]]:
    """Return initializers of the weights of each layer, and of the inputs and the biases.

    With `scalars`, each scalar has an initializer. A scalar has no shape from which the bounds of
    ``glorot`` and ``he`` could be computed, so that the bounds are written as numbers.
    """
    vectors: list[Any] = ["uniform(-1, 1)", *(["zeros" if bias else ""] * (len(layers) - 1))]
    weights: list[Any] = [_format_weight_initializer(function) for function in functions]
    if not scalars:
        return weights, vectors
    for k, (inputs, units) in enumerate(pairwise(layers)):
        if weights[k] == "he":
            initializer = f"normal({number_text(round(math.sqrt(2 / inputs), 2))})"
        else:
            initializer = _format_uniform_initializer(math.sqrt(6 / (inputs + units)))
        weights[k] = [[initializer] * inputs] * units
    return weights, [[text] * n * bool(text) for text, n in zip(vectors, layers, strict=True)]


def _format_weight_initializer(function: str) -> str:
    """Return the name of the weight initializer that suits an activation function."""
    return "he" if function.partition("(")[0] in _RECTIFIERS else "glorot"


def _format_matrix_lines(
    layers: list[int], functions: list[str], weights: list[Any], vectors: list[Any]
) -> list[str]:
    """Return the source lines of a network with a weight matrix for each layer."""
    lines, last = [f"input x[{layers[0]}] = {_format_initial_value(vectors[0])}"], len(layers) - 1
    definitions, previous = [], "x"
    for k in range(1, len(layers)):
        parts = [f"W{k}[{layers[k]},{layers[k - 1]}] = {_format_initial_value(weights[k - 1])}"]
        parts += [f"b{k}[{layers[k]}] = {_format_initial_value(vectors[k])}"] if vectors[k] else []
        lines.append(f"parameter {', '.join(parts)}")
        total = f"W{k} @ {previous}" + f" + b{k}" * bool(vectors[k])
        previous = "xo" if k == last else f"xh{k}"
        definitions.append(f"{previous} = {functions[k - 1].format(total)}")
    return [*lines, *definitions, "output xo"]


def _format_unit_lines(
    layers: list[int], functions: list[str], weights: list[Any], vectors: list[Any]
) -> list[str]:
    """Return the source lines of a network with a scalar for each unit and each weight."""
    previous = [f"x{k}" for k in range(1, layers[0] + 1)]
    lines = _format_declarations("input", dict(zip(previous, vectors[0], strict=True)))
    definitions = []
    for k in range(1, len(layers)):
        units, several = list[str](), layers[k] > 1
        for unit in range(1, layers[k] + 1):
            ending = f"_{unit}" if several else ""
            names = [f"w{k}{ending}_{j}" for j in range(1, len(previous) + 1)]
            values = dict(zip(names, weights[k - 1][unit - 1], strict=True))
            biases = [f"b{k}{ending}"] if vectors[k] else []
            values |= dict(zip(biases, vectors[k][unit - 1 : unit], strict=True))
            lines += _format_declarations("parameter", values)
            terms = [f"{w}*{name}" for w, name in zip(names, previous, strict=True)]
            units.append(("xo" if k == len(layers) - 1 else f"xh{k}") + ending)
            definitions.append(
                f"{units[-1]} = {functions[k - 1].format(_format_sum(terms, biases))}"
            )
        previous = units
    return [*lines, *definitions, f"output {', '.join(previous)}"]


def _format_declarations(kind: str, values: Mapping[str, float | str]) -> list[str]:
    """Return the source lines that declare inputs or parameters, several on each line."""
    lines: list[str] = []
    for name, value in values.items():
        part = f"{name} = {value}"
        if lines and len(lines[-1]) + len(part) + 2 <= _WIDTH:
            lines[-1] += f", {part}"
        else:
            lines.append(f"{kind} {part}")
    return lines


def _format_initial_value(numbers: Any) -> str:
    """Format an initializer or a nested list; a list with a single scalar becomes the scalar."""
    if isinstance(numbers, str):
        return numbers
    return str(numbers[0] if numbers[1:] == [] and isinstance(numbers[0], float) else numbers)


def _format_sum(terms: Sequence[str], more: Sequence[str] = ()) -> str:
    """Join terms to a sum, such as ``a + b``."""
    return " + ".join([*terms, *more])


def _name_parameter(number: int) -> str:
    """Return the parameter name with an index: ``a``, ..., ``z``, ``a1``, ... without ``x``."""
    letters = "abcdefghijklmnopqrstuvwyz"
    suffix, index = divmod(number, len(letters))
    return letters[index] + (str(suffix) if suffix else "")


def _sample_scalar(generator: Random, limit: float, *, values: bool) -> float | str:
    """Sample a scalar between -limit and limit; without `values`, return a uniform initializer.

    A scalar is sampled in both cases, so that `values` does not change the rest of the graph.
    """
    number = _sample_number(generator, limit)
    return number if values else _format_uniform_initializer(limit)


def _format_uniform_initializer(limit: float) -> str:
    """Return the initializer ``uniform(-limit, limit)``."""
    bound = number_text(round(limit, 2))
    return f"uniform(-{bound}, {bound})"


def _sample_number(generator: Random, limit: float) -> float:
    """Sample a number between -limit and limit, rounded to two decimals."""
    return round(generator.uniform(-limit, limit), 2) + 0.0  # no negative zero


def _parse_graph(lines: list[str], name: str) -> ExpressionGraph:
    """Parse source lines as a graph with the given name."""
    return parse("\n".join(lines), name=f"<{name}>")


def _check_sizes(sizes: str | Sequence[int]) -> list[int]:
    """Return layer sizes as integers; raise UsageError for fewer than two or a size below 1."""
    parts: Sequence[Any] = sizes.split("-") if isinstance(sizes, str) else sizes
    try:
        layers = [int(part) for part in parts]
    except (TypeError, ValueError):
        layers = []
    if len(layers) < 2 or min(layers) < 1:
        hint = "give the units per layer, starting with the inputs, such as 4-2-1"
        raise UsageError(f"{sizes!r} is not a valid list of layer sizes", hint=hint)
    return layers


def _check_count(what: str, number: Any) -> int:
    """Return a count as an integer; raise UsageError unless it is positive."""
    return check_integer(f"the number of {what}", number, minimum=1)


def _format_activation(name: str, scalars: bool = True) -> str:
    """Return an activation as a format string, such as ``tanh({})``."""
    if name == "none":
        return "{}"
    elementwise = [row.name for row in primitives() if row.arity == 1 and row.name != "neg"]
    if name in elementwise or (name in ARRAY_ACTIVATIONS and not scalars):
        return f"{name}({{}})"
    if name in ARRAY_ACTIVATIONS:
        raise UsageError(f"{name} is only for the last layer of an mlp with matrices")
    hint = name_hint(name, ["none", *elementwise])
    raise UsageError(f"unknown activation {name!r}", hint=hint)
