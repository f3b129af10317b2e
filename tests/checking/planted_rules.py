"""Wrong rules, wrong forward passes and early updates, planted in students' programs.

Each mistake is planted in graphs that are composed of pieces in which it can be made. Half of the
other pieces are piecewise; several graphs have inputs that are labels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from random import Random
from typing import Any

import numpy as np

import cgprimer
from cgprimer import ExpressionGraph
from cgprimer.core.language.syntax_tree import Apply, Name, Number, names_in
from cgprimer.course.checks.gradient_check import GradientCheck, build_gradient_check
from tests.checking import planted
from tests.checking.planted import right, samples, with_habits
from tests.checking.students import RULES, Habits, Node, Student

Point = Mapping[str, Any]
OTHERS = (
    "{p}*{o} + {o}", "{p}*{o}^2 - {o}", "exp({p}*{o}/4)", "{o}*{o} - {p}", "{p}/({o}^2 + 1)",
    "relu({p}*{o} + {p})*{p}", "where(less({o}, 0), {p}*{o}, {p}*{o}^2)", "max({p}*{o}, {o})",
    "abs({o} + {p})", "min({p}, {p}*{o})",
)  # fmt: skip


def composed(seed: int, pieces: tuple[str, ...]) -> ExpressionGraph:
    """Return a graph of up to four lines; the first piece is one of these.

    In a piece ``{o}`` is a variable, ``{p}`` any parameter; ``{s}`` and ``{q}`` stand for the same
    ones throughout.
    """
    draw = Random(seed)
    names, parameters = ["x1", "x2"], list[str]()

    def parameter(_: object = None) -> str:
        if not parameters or draw.random() > 0.4:
            parameters.append(f"p{len(parameters) + 1}")
            return parameters[-1]
        return draw.choice(parameters)

    lines = []
    for k in range(1 + seed % 4):
        piece = draw.choice(pieces) if k == seed % 2 or seed % 4 == 0 else draw.choice(OTHERS)
        piece = piece.replace("{s}", names[-1]).replace("{q}", parameter())
        if "{c}" in piece and "c" not in parameters:
            parameters.append("c")
        piece = piece.replace("{c}", "c")
        piece = re.sub("{o}", lambda _: draw.choice(names[-2:]), piece)
        lines.append(f"v{k} = " + re.sub("{p}", parameter, piece))
        names.append(f"v{k}")
    lines.append("y = " + " + ".join([f"{parameter()}*{names[-1]}", *names[2:-1]]))
    values = ", ".join(f"{p} = {round(draw.uniform(0.3, 1.5), 2)}" for p in parameters)
    declared = ["input x1 = 0.7, x2 = 0.4", f"parameter {values}"]
    return cgprimer.parse("\n".join([*declared, *lines, "output y"]))


def asked(graph: ExpressionGraph, number: int) -> GradientCheck:
    """Return a check of the graph itself, of a loss, of a batch, or of a loss with labels."""
    if number % 5 == 4:
        return build_gradient_check(graph, loss="hinge", seed=number)
    return planted.asked(graph, number)


# --- wrong local rules ---------------------------------------------------------------------------

Wrong = Callable[..., tuple[float | None, ...]]


LOCAL: dict[str, tuple[tuple[str, str, Wrong], ...]] = {
    # For each mistake: a piece, the function in it, and its wrong partials.
    "wrong derivative of a function": (
        ("tanh({p}*{o})", "tanh", lambda out, a: (1 - out,)),
        ("{p}*tanh({o} + {p})", "tanh", lambda out, a: (1 + out * out,)),
        ("sigmoid({p}*{o})*{p}", "sigmoid", lambda out, a: (1 - out,)),
        ("sigmoid({p} + {o})", "sigmoid", lambda out, a: (1 - out * out,)),
        ("tanh({p}*{o} - {p})", "tanh", lambda out, a: (out * (1 - out),)),
        ("relu({p}*{o} + {p})", "relu", lambda out, a: (max(a, 0.0),)),
        ("relu({p}*{o} + {p})", "relu", lambda out, a: (float(a < 0),)),
        ("log(1 + {p}^2*{o}^2)", "log", lambda out, a: (1 / out,)),
        ("sqrt({p}^2 + {o}^2)", "sqrt", lambda out, a: (1 / math.sqrt(a),)),
        ("atan({p}*{o})", "atan", lambda out, a: (1 / (1 - a * a),)),
        ("tan({p}*{o}/9)", "tan", lambda out, a: (1 / math.cos(a),)),
        ("softplus({p}*{o})", "softplus", lambda out, a: (1 / (1 + math.exp(a)),)),
        ("abs({p}*{o} + {p})", "abs", lambda out, a: (float(a > 0),)),
        ("max({p}*{o}, {p} + {o})", "max", lambda out, a, b: (float(a < b), float(a > b))),
    ),
    "power rule": (
        ("({p}*{o} + {p})^3", "pow", lambda out, a, b: (b * a, 0.0)),
        ("({p}*{o} + 3)^4", "pow", lambda out, a, b: (b * a, 0.0)),
        ("({p} + {o})^3", "pow", lambda out, a, b: (b * a**b, 0.0)),
        ("({p} - {o})^5", "pow", lambda out, a, b: ((b - 1) * a ** (b - 1), 0.0)),
        ("{p}^3*{o}", "pow", lambda out, a, b: (a ** (b - 1), 0.0)),
        ("({p}*{o})^3", "pow", lambda out, a, b: (b * a ** (b + 1), 0.0)),
        ("({p}*{o})^4", "pow", lambda out, a, b: (a ** (b + 1) / (b + 1), 0.0)),
    ),
    "power rule on a variable exponent": (
        ("2^({p}*{o})", "pow", lambda out, a, b: (0.0, b * a ** (b - 1))),
        ("3^({p} + {o}/2)", "pow", lambda out, a, b: (0.0, b * a ** (b - 1))),
        ("(1 + {q}^2)^({q} + 1)", "pow", lambda out, a, b: (b * a ** (b - 1), 0.0)),
        ("(2 + sin({q}))^({q}*{o})", "pow", lambda out, a, b: (b * a ** (b - 1), 0.0)),
        ("(1.5 + {q}^2)^({q}/2)", "pow", lambda out, a, b: (0.0, out * math.log(a))),
        ("exp({p}*{o})", "exp", lambda out, a: (a * math.exp(a - 1),)),
    ),
    "logarithm missing": (
        ("2^({p}*{o})", "pow", lambda out, a, b: (b * a ** (b - 1), out)),
        ("0.5^({p} + {o})", "pow", lambda out, a, b: (b * a ** (b - 1), out)),
        ("3^({p}*{o}/2)*{p}", "pow", lambda out, a, b: (b * a ** (b - 1), out)),
        ("(1 + {o}^2)^({p}/2)", "pow", lambda out, a, b: (b * a ** (b - 1), out)),
        ("log10(1 + {p}^2 + {o}^2)", "log10", lambda out, a: (1 / a,)),
    ),
    "function not differentiated": (
        ("sin({p}*{o})", "sin", lambda out, a: (out,)),
        ("{p}*cos({p} + {o})", "cos", lambda out, a: (out,)),
        ("tanh({p}*{o} + {p})", "tanh", lambda out, a: (out,)),
        ("log(1 + {p}^2 + {o}^2)", "log", lambda out, a: (out,)),
        ("sigmoid({p}*{o})", "sigmoid", lambda out, a: (out,)),
        ("sqrt(1 + {p}^2*{o}^2)", "sqrt", lambda out, a: (out,)),
        ("({p}*{o} + {p})^3", "pow", lambda out, a, b: (out, 0.0)),
    ),
    "quotient rule": (
        ("{o}/({p}^2 + 2)", "div", lambda out, a, b: (1 / b, -1 / b**2)),
        ("({q} + {o})/({q}^2 + 2)", "div", lambda out, a, b: (-1 / b, a / b**2)),
        ("{q}*{o}/({q}^2 + 2)", "div", lambda out, a, b: (1 / b, a / b**2)),
        ("sin({q})/({q}^2 + 2)", "div", lambda out, a, b: (1.0, -a / b)),
    ),
    "activation derivative twice": (
        ("tanh({p}*{o})", "tanh", lambda out, a: ((1 - out * out) ** 2,)),
        ("sigmoid({p}*{o} + {p})", "sigmoid", lambda out, a: ((out * (1 - out)) ** 2,)),
        ("sin({p}*{o})", "sin", lambda out, a: (math.cos(a) ** 2,)),
        ("softplus({p}*{o})*{p}", "softplus", lambda out, a: ((1 / (1 + math.exp(-a))) ** 2,)),
    ),
}  # fmt: skip


def _local(mistake: str) -> Any:
    """Return a planter of one of the wrong rules of a mistake."""

    def plant(number: int) -> Any:
        rules = LOCAL[mistake]
        piece, function, wrong = rules[number % len(rules)]
        graph = composed(number, (piece,))
        everywhere = number % 3

        def partials(node: Node) -> list[float] | None:
            if node.function != function or not _piece(node, piece):
                return None
            if everywhere == 0 and node.line != chosen:
                return None
            made = wrong(node.value, *[o.value for o in node.operands])
            return [math.nan if p is None else p for p in made]

        lines = [n for n, t in graph.definitions.items() if function in repr(t)]
        chosen = lines[number % len(lines)] if lines else ""
        check = asked(graph, number)
        return check, with_habits(check, Habits(partials=partials))

    return plant


def _piece(node: Node, piece: str) -> bool:
    """Return whether a power, or a quotient, is of the kind that a piece has."""
    if node.function == "div":
        below = node.operands[1]  # of these pieces it is a sum with 2
        return bool(below.operands) and below.operands[-1].value == 2.0
    if node.function != "pow":
        return True
    is_variable = bool(node.operands[1].line)
    return is_variable is ("^(" in piece)


def degrees(number: int) -> Any:
    function, slope = (("sin", math.cos), ("cos", lambda a: -math.sin(a)))[number % 2]
    graph = composed(number, (f"{function}({{p}}*{{o}})", f"{function}({{o}} + {{p}})*{{p}}"))
    check, way = asked(graph, number), number // 2 % 3

    def value(name: str, operands: list[Node], line: str) -> float | None:
        if name != function or way == 2:
            return None
        return RULES[function][0](math.radians(operands[0].value))

    def partials(node: Node) -> list[float] | None:
        if node.function != function:
            return None
        factor = math.pi / 180 if way == 1 else 1.0
        return [factor * slope(math.radians(node.operands[0].value))]

    return check, with_habits(check, Habits(value=value, partials=partials))


# --- products, in forward mode -------------------------------------------------------------------

PRODUCTS = ("sin({q}*{o})*({q}^2 + {o})", "({q} + {o})*tanh({q}*{o})", "exp({q}/2)*sin({q} + {o})",
            "{q}*cos({q}*{o})", "({q}^2 + 1)*sigmoid({q})")  # fmt: skip


Dual = tuple[float, float, bool]  # a value, its tangent, whether it depends on the variable
Tangent = Callable[[str, Apply, list[Dual], list[float]], float]


def product_rule(number: int) -> Any:
    graph = composed(number, PRODUCTS)
    check, way = build_gradient_check(graph, seed=number), number % 3
    chosen = [n for n in graph.definitions if n != "y"][number % 2 : number % 2 + 1]

    def wrong(line: str, tree: Apply, parts: list[Dual], terms: list[float]) -> float:
        if line in chosen and tree.primitive == "mul" and all(p[2] for p in parts):
            return (parts[0][1] * parts[1][1], terms[0], terms[1])[way]
        return sum(terms)

    return check, lambda point: {n: _tangent(graph, point, n, wrong) for n in check.question.wrt}


def constant_kept(number: int) -> Any:
    graph = composed(number, ("{q}^2 + {q}*{o} + 3", "5 + {q}*{o}", "sin({q}*{o}) - 2"))
    check = build_gradient_check(graph, seed=number)
    chosen = [n for n, t in graph.definitions.items() if isinstance(t, Apply) and _constant(t)][:1]

    def wrong(line: str, tree: Apply, parts: list[Dual], terms: list[float]) -> float:
        constant = _constant(tree) if line in chosen and any(p[2] for p in parts) else None
        return sum(terms) + (constant or 0.0)

    return check, lambda point: {n: _tangent(graph, point, n, wrong) for n in check.question.wrt}


def _constant(tree: Apply) -> float | None:
    """Return the constant term of a sum, or None."""
    signs = {"add": (1.0, 1.0), "sub": (1.0, -1.0)}.get(tree.primitive, ())
    for argument, sign in zip(tree.arguments, signs, strict=False):
        if isinstance(argument, Number):
            return sign * argument.value
    return None


def _tangent(graph: ExpressionGraph, point: Point, name: str, tangent: Tangent) -> float:
    """Return a derivative by forward mode; `tangent` puts an operation's terms together.

    It is asked about the operation at the root of a line only.
    """
    known: dict[str, Dual] = {
        n: (float(v), 1.0 if n == name else 0.0, n == name) for n, v in point.items()
    }

    def dual(tree: Any, line: str) -> Dual:
        if isinstance(tree, Name):
            return known[tree.name]
        if isinstance(tree, Number):
            return tree.value, 0.0, False
        assert isinstance(tree, Apply)
        parts = [dual(a, "") for a in tree.arguments]
        value, partials = RULES[tree.primitive]
        numbers = [p[0] for p in parts]
        terms = [p(*numbers) * t[1] if t[2] else 0.0 for p, t in zip(partials, parts, strict=True)]
        return value(*numbers), tangent(line, tree, parts, terms), any(p[2] for p in parts)

    for line, tree in graph.definitions.items():
        known[line] = dual(tree, line)
    return known[graph.only_output()][1]


# --- losses, labels and batches ------------------------------------------------------------------

CLASSIFIERS = (
    "input x1 = 0.5, x2 = -1; parameter w1 = 0.4, w2 = -0.3, b = 0.2; z = w1*x1 + w2*x2 + b;"
    " p = sigmoid(z); output p",
    "input x1 = 0.5; parameter w1 = 0.4, w2 = -0.3, b = 0.2; h = tanh(w1*x1 + b); z = w2*h;"
    " p = sigmoid(z); output p",
    "input x1 = 0.5; parameter w1 = 0.4, w2 = 0.7, b = 0.2; h = relu(w1*x1 + b); z = w2*h + b;"
    " p = sigmoid(z); output p",
    "input x1 = 0.5, x2 = 1; parameter w1 = 0.4, w2 = 0.7; h = abs(w1*x1 - x2); z = w2*h - w1;"
    " p = sigmoid(z); output p",
)
WRITTEN_OUT = " L = -(t*log(p) + (1 - t)*log(1 - p)); output L"


def cross_entropy(number: int) -> Any:
    """``(p - y)*p*(1 - p)`` for the derivative of cross-entropy by the logit."""
    text = CLASSIFIERS[number % 4]
    label = "target"
    if number % 3 == 0:
        text = text.replace("input ", "input t = 1, ").replace(" output p", WRITTEN_OUT)
        label, graph = "t", cgprimer.parse(text)
        check = build_gradient_check(graph, seed=number)
    elif number % 3 == 1:
        check = build_gradient_check(cgprimer.parse(text), loss="cross-entropy", seed=number)
    else:
        logit = cgprimer.parse(text.split(" p =")[0] + " output z")
        check = build_gradient_check(logit, loss="cross-entropy-logit", seed=number)
    student = Student(cgprimer.parse(text.split(" p =")[0] + " output z"))

    def gradient(point: Point) -> dict[str, float]:
        z = student.nodes(point)["z"].value
        p = 1 / (1 + math.exp(-z))
        seed = (p - point[label]) * p * (1 - p)
        found = student.gradient(point, seed, of="z")
        return {n: found[n] for n in check.question.wrt}

    return check, gradient


def samples_left_out(number: int) -> Any:
    graph = composed(number, OTHERS)
    reduction = ("mean", "sum")[number % 3 == 2]
    check = build_gradient_check(
        graph, loss="squared-error", batch=4, reduction=reduction, seed=number
    )
    student = Student(check.question.graph)

    def gradient(point: Point) -> dict[str, float]:
        each = samples(check, point)[:-1] if number % 4 else samples(check, point)[1:]
        slopes = [student.gradient(one) for one in each]
        scale = 1 if reduction == "sum" else 3 + number % 2
        return {n: sum(s[n] for s in slopes) / scale for n in check.question.wrt}

    return check, gradient


# --- forward passes, variables, updates ----------------------------------------------------------

BIASED = ("tanh({p}*{o} + {c})", "relu({p}*{o} + {c})*{p}", "{p}*sin({c} + {p}*{o})",
          "({p}*{o} + {c})^2", "max({p}*{o} + {c}, 0)", "exp(({p}*{o} + {c})/4)")  # fmt: skip


def bias(number: int) -> Any:
    check = asked(composed(number, BIASED), number)

    def value(name: str, operands: list[Node], line: str) -> float | None:
        if name == "add" and any(o.line == "c" for o in operands):
            return next(o.value for o in operands if o.line != "c")
        return None

    return check, with_habits(check, Habits(value=value))


def wrong_variable(number: int) -> Any:
    """The derivative by an input, or by another parameter, for that by a parameter."""
    check = build_gradient_check(composed(number, OTHERS), seed=number)
    student, wrt = Student(check.question.graph), check.question.wrt
    names = (*check.question.graph.inputs, *wrt)
    chosen = wrt[number % len(wrt)]
    other = names[number % len(names)]
    if student.gradient(check.question.graph.values)[other] == 0:
        return None

    def gradient(point: Point) -> dict[str, float]:
        found = student.gradient(point)
        return {n: found[other if n == chosen else n] for n in wrt}

    return check, gradient


def weight_decay(number: int) -> Any:
    check = asked(composed(number, OTHERS), number)
    good, strength = right(check), (0.1, 0.01, 0.001, 0.5)[number % 4]
    chosen = check.question.wrt[number % 2 :]
    return check, lambda p: {n: v + strength * p[n] * (n in chosen) for n, v in good(p).items()}


def parameter_returned(number: int) -> Any:
    check = asked(composed(number, OTHERS), number)
    good, rate = right(check), (0.1, 0.01, 0.5, 0.03)[number % 4]
    return check, lambda p: {n: p[n] - rate * v for n, v in good(p).items()}


def wrong_factor(number: int) -> Any:
    """The derivative of a product by a parameter is the value of another variable."""
    graph = composed(number, ("tanh({q}*{o})", "sin({q}*{o})", "sigmoid({q}*{o})"))
    uses = [n for tree in graph.definitions.values() for n in names_in(tree)]
    single = [
        (*sorted(names_in(tree), key=lambda n: n not in graph.parameters), line)
        for line, tree in graph.definitions.items()
        if len(names_in(tree)) == 2 and isinstance(tree, Apply) and len(tree.arguments) == 1
    ]
    single = [one for one in single if uses.count(one[0]) == 1]
    if not single:
        return None
    name, factor, line = single[0]
    others = [line, *(n for n in graph.inputs if n != factor)]
    other = others[number % len(others)]
    check = build_gradient_check(graph, seed=number)
    good, student = right(check), Student(check.question.graph)

    def gradient(point: Point) -> dict[str, float]:
        known, found = student.nodes(point), good(point)
        return {**found, name: found[name] / known[factor].value * known[other].value}

    return check, gradient


RATES = (0.1, 0.01, 0.5, 0.05, 0.001)


def early_update(number: int) -> Any:
    """Parameters are updated one after the other, or the last layer before the first."""
    rate = RATES[number % 5]
    if number % 2:
        check = build_gradient_check(composed(number, OTHERS), seed=number)
        good = right(check)

        def one_by_one(point: Point) -> dict[str, float]:
            now, found = dict(point), {}
            for name in check.question.wrt:
                found[name] = good(now)[name]
                now[name] -= rate * found[name]
            return found

        return check, one_by_one
    check, layers = _layers(number)

    def gradient(**point: Any) -> dict[str, Any]:
        return layers(point, rate=rate)

    return check, lambda point: gradient(**point)


ACTIVATIONS: dict[str, tuple[Any, Any]] = {
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(float)),
    "sin": (np.sin, np.cos),
    "abs": (np.abs, np.sign),
}


def _layers(number: int) -> tuple[GradientCheck, Callable[..., dict[str, Any]]]:
    """Return a network with two square layers and its gradient, with numpy as courses write it."""
    size, name = 2 + number % 2, [*ACTIVATIONS][number // 2 % 4]
    draw = np.random.default_rng(number)
    first, second = draw.uniform(-1, 1, (2, size, size)).round(2).tolist()
    last = draw.uniform(-1, 1, size).round(2).tolist()
    text = (
        f"input x[{size}] = {draw.uniform(-1, 1, size).round(2).tolist()}\n"
        f"parameter W1[{size},{size}] = {first}, W2[{size},{size}] = {second}, v[{size}] = {last}\n"
        f"h = {name}(W1 @ x)\nk = {name}(W2 @ h)\no = dot(v, k)\noutput o"
    )
    check = build_gradient_check(cgprimer.parse(text), loss="squared-error", seed=number, count=10)
    function, slope = ACTIVATIONS[name]

    def gradient(
        point: Point, rate: float = 0.0, backward: bool = False, forward: bool = False
    ) -> dict[str, Any]:
        x, W1, W2, v = (np.array(point[n], float) for n in ("x", "W1", "W2", "v"))
        used = W2.T if forward else W2
        z1 = W1 @ x
        h = function(z1)
        z2 = used @ h
        k = function(z2)
        error = 2 * (v @ k - point["target"])
        dv = error * k
        v = v - rate * dv
        d2 = error * v * slope(z2)
        dW2 = np.outer(d2, h)
        W2 = W2 - rate * dW2
        back = W2 if backward else W2.T
        back = back.T if forward else back
        d1 = (back @ d2) * slope(z1)
        return {"W1": np.outer(d1, x).tolist(), "W2": dW2.tolist(), "v": dv.tolist()}

    return check, gradient


def transposed(number: int) -> Any:
    check, layers = _layers(number)
    way = {"forward" if number % 3 == 2 else "backward": True}
    return check, lambda point: layers(point, **way)


# --- what is made of the right numbers ------------------------------------------------------------


def _changed(change: Callable[[float], float]) -> Any:
    """Return a planter that changes the right numbers of some names."""

    def plant(number: int) -> Any:
        check = asked(composed(number, OTHERS), number)
        good, chosen = right(check), check.question.wrt[number % 2 :]

        def gradient(point: Point) -> dict[str, float]:
            return {n: change(v) if n in chosen else v for n, v in good(point).items()}

        return check, gradient

    return plant


def averaged(number: int) -> Any:
    """The mean over a batch where the sum is asked for."""
    graph = composed(number, OTHERS)
    check = build_gradient_check(graph, loss="squared-error", batch=3, reduction="sum", seed=number)
    good = right(check)
    return check, lambda point: {n: v / 3 for n, v in good(point).items()}


def reordered(number: int) -> Any:
    """The values of three or more parameters, one place further."""
    check = asked(composed(number, OTHERS), number)
    good, wrt = right(check), check.question.wrt
    if len(wrt) < 3:
        return None

    def gradient(point: Point) -> dict[str, float]:
        values = [*good(point).values()]
        return dict(zip(wrt, values[1:] + values[:1], strict=True))

    return check, gradient


def inner_variable(number: int) -> Any:
    """The derivative of an inner variable for that of the output."""
    check = asked(composed(4 * number + 1 + number % 3, OTHERS), number)
    student, question = Student(check.question.graph), check.question
    if question.batch:
        return None

    def gradient(point: Point) -> dict[str, float]:
        found = student.gradient(point, of="v0")
        return {n: found[n] for n in question.wrt}

    return check, gradient


def inner_product(number: int) -> Any:
    """The derivative of ``f(q*x)`` by ``q`` without the factor ``x``."""
    pieces = ("sin({q}*{o})", "exp({q}*{o})", "tanh({q}*{o})", "softplus({q}*{o})")
    graph = composed(number, pieces)
    check = asked(graph, number)
    chosen = [n for n, t in graph.definitions.items() if len(t.arguments) == 1][:1]

    def partials(node: Node) -> list[float] | None:
        if node.function != "mul" or node.line not in chosen:
            return None
        return [1.0, node.operands[0].value]

    return check, with_habits(check, Habits(partials=partials))


def _alternating(one: Any, other: Any) -> Any:
    return lambda number: (other if number % 2 else one)(number)


PLANTED_RULES: dict[str, Callable[[int], Any]] = {
    **{mistake: _local(mistake) for mistake in LOCAL},
    "activation derivative twice": _alternating(
        _local("activation derivative twice"), lambda number: cross_entropy(number // 2)
    ),
    "degrees instead of radians": degrees,
    "product rule": product_rule,
    "samples left out": samples_left_out,
    "bias forgotten": bias,
    "wrong variable": wrong_variable,
    "weight decay added": weight_decay,
    "weight updated before its use": early_update,
    "transposed weights": transposed,
    "constant not differentiated": constant_kept,
    "wrong factor": wrong_factor,
    "updated parameter returned": parameter_returned,
    "constant zero": _changed(lambda value: 0.0),
    "absolute value": _changed(abs),
    "reciprocal": _changed(lambda value: 1 / value),
    "constant factor": _changed(lambda value: 1.7 * value),
    "mean instead of sum": averaged,
    "order of the values": reordered,
    "outer derivative missing": inner_variable,
    "inner derivative missing": inner_product,
}


def planted_rules(mistake: str) -> Iterator[tuple[Any, GradientCheck, Callable[[Point], Any]]]:
    """Yield graphs with their checks and the programs of students who make a mistake."""
    for number in count():
        try:
            made = PLANTED_RULES[mistake](number)
        except cgprimer.DifferentiationError:
            continue  # too few points
        if made:
            check, function = made
            yield check.question.graph, check, function
