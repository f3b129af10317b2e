"""Made-up graphs for paper and pencil: few operations, values that are used more than once."""

from __future__ import annotations

from random import Random

_BOUNDED = ("sin", "cos", "tanh", "sigmoid", "exp", "log")  # of the third difficulty
_PARAMETERS = "abcdk"


def made_up(random: Random, difficulty: int) -> str:
    """The definitions of a graph, its only output last; values come from somewhere else.

    The first difficulty has sums, products and squares; the second more of them, differences,
    quotients and ``relu`` or ``max``; the third one function beyond arithmetic.

    >>> print(made_up(Random(1), 1))
    xp = x1*x2
    xq = a + x1
    xw = xp^2*xp*xq
    output xw
    """
    many = random.choice({1: (3, 3, 4), 2: (4, 5), 3: (4, 5)}[difficulty])
    inputs = ["x1", "x2"][: random.choice((1, 2, 2))]
    parameters = list(_PARAMETERS[: random.choice((1, 2, 2)) if many > 3 else 1])
    waiting, known, lines = [*inputs, *parameters], [*inputs, *parameters], list[str]()
    special = random.randrange(many) if difficulty == 3 else -1

    def operand() -> str:  # mostly one that nothing uses yet
        if waiting and random.random() < 0.6:
            return waiting.pop(random.randrange(len(waiting)))
        return random.choice(known)

    def other(than: str) -> str:
        chosen = operand()
        return chosen if chosen != than else random.choice([n for n in known if n != than] or known)

    for k in range(many):
        name = "xw" if k == many - 1 else f"x{'pqrstuv'[k]}"
        first = operand()
        if k == special:
            text = f"{random.choice(_BOUNDED)}({first})"
        else:
            forms = ["{0}*{1}", "{0} + {1}", "{0}*{1}", "{0}^2"]
            forms += ["{0} - {1}", "{0}*{1} + {2}", "{0}/{1}", "{0}*({1} + {2})"] * (difficulty > 1)
            forms += ["relu({0})", "max({0}, {1})"] * (difficulty == 2)
            form = random.choice(forms)
            second = other(first) if "{1}" in form else ""
            third = other(second) if "{2}" in form else ""
            text = form.format(first, second, third)
        if k == many - 1:
            for left in [n for n in waiting if n not in text.split()]:
                if random.random() < 0.5:
                    text = f"{text} + {left}"
                else:
                    text = f"({text})*{left}" if " " in text else f"{text}*{left}"
        elif f" = {text}" in "".join(lines):
            text = f"{text}*{other(first)}"
        lines.append(f"{name} = {text}")
        waiting.append(name)
        known.append(name)
    return "\n".join([*lines, "output xw"])


def quadratic(random: Random, difficulty: int) -> str:
    """A loss of two parameters for one step of an optimizer.

    >>> print(quadratic(Random(1), 1))
    L = a^2 + 3*b^2
    output L
    """
    m, n = random.choice(("", "2*", "3*")), random.choice(("", "2*", "3*"))
    forms = [f"L = {m}a^2 + {n}b^2"]
    if difficulty > 1:
        forms = ["L = (a*x + b - y)^2", f"L = {m}a^2 + a*b + {n}b^2", "L = (a*b - y)^2"]
    if difficulty > 2:
        forms = ["xp = a*x + b\nL = (xp - y)^2 + a^2", "xp = a*b + x\nL = xp^2 + b"]
    text = random.choice(forms)
    declared = "input y\n" if "y" in text else ""
    return f"{declared}{text}\noutput L"


def matrices(random: Random, difficulty: int) -> str:
    """Two layers of matrices and the squared error, as in the lecture; shapes are drawn.

    >>> print(matrices(Random(1), 1))
    input x[1,2], y[1,1]
    parameter w1[2,2], w2[2,1]
    h = x @ w1
    h_relu = relu(h)
    y_pred = h_relu @ w2
    L = sum((y_pred - y)^2)
    output L
    """
    n, m, k = {1: (2, 2, 1), 2: (2, random.choice((2, 3)), 1), 3: (3, 2, 2)}[difficulty]
    biased = difficulty > 1 and random.random() < 0.5
    bias = f", b[1,{m}]" if biased else ""
    return (
        f"input x[1,{n}], y[1,{k}]\n"
        f"parameter w1[{n},{m}]{bias}, w2[{m},{k}]\n"
        f"h = x @ w1{' + b' if biased else ''}\nh_relu = relu(h)\n"
        "y_pred = h_relu @ w2\nL = sum((y_pred - y)^2)\noutput L"
    )
