"""Random graphs with few operations, for problems that students solve by hand."""

from __future__ import annotations

from random import Random

_BOUNDED = ("sin", "cos", "tanh", "sigmoid", "exp", "log")  # of the third difficulty
_PARAMETERS = "abcdk"


def sample_scalar_graph(random: Random, difficulty: int) -> str:
    """Sample the text of a scalar graph that has one output and declares no values.

    Difficulty 1 has sums, products and squares. Difficulty 2 has more operations, differences,
    quotients and ``relu`` or ``max``. Difficulty 3 also has one function beyond arithmetic.

    >>> print(sample_scalar_graph(Random(1), 1))
    xp = x1*x2
    xq = a + x1
    xw = xp^2*xp*xq
    output xw
    """
    n_operations = random.choice({1: (3, 3, 4), 2: (4, 5), 3: (4, 5)}[difficulty])
    inputs = ["x1", "x2"][: random.choice((1, 2, 2))]
    parameters = list(_PARAMETERS[: random.choice((1, 2, 2)) if n_operations > 3 else 1])
    unused, names, lines = [*inputs, *parameters], [*inputs, *parameters], list[str]()
    special = random.randrange(n_operations) if difficulty == 3 else -1

    def sample_operand() -> str:
        """Sample a name as an operand, preferably a name that is not used yet."""
        if unused and random.random() < 0.6:
            return unused.pop(random.randrange(len(unused)))
        return random.choice(names)

    def sample_different_operand(excluded: str) -> str:
        """Sample an operand that differs from the given name if possible."""
        name = sample_operand()
        return (
            name
            if name != excluded
            else random.choice([n for n in names if n != excluded] or names)
        )

    for k in range(n_operations):
        name = "xw" if k == n_operations - 1 else f"x{'pqrstuv'[k]}"
        first = sample_operand()
        if k == special:
            text = f"{random.choice(_BOUNDED)}({first})"
        else:
            forms = ["{0}*{1}", "{0} + {1}", "{0}*{1}", "{0}^2"]
            forms += ["{0} - {1}", "{0}*{1} + {2}", "{0}/{1}", "{0}*({1} + {2})"] * (difficulty > 1)
            forms += ["relu({0})", "max({0}, {1})"] * (difficulty == 2)
            form = random.choice(forms)
            second = sample_different_operand(first) if "{1}" in form else ""
            third = sample_different_operand(second) if "{2}" in form else ""
            text = form.format(first, second, third)
        if k == n_operations - 1:
            for left in [n for n in unused if n not in text.split()]:
                if random.random() < 0.5:
                    text = f"{text} + {left}"
                else:
                    text = f"({text})*{left}" if " " in text else f"{text}*{left}"
        elif f" = {text}" in "".join(lines):
            text = f"{text}*{sample_different_operand(first)}"
        lines.append(f"{name} = {text}")
        unused.append(name)
        names.append(name)
    return "\n".join([*lines, "output xw"])


def sample_loss(random: Random, difficulty: int) -> str:
    """Sample the text of a loss with two parameters, for a problem about an optimizer.

    >>> print(sample_loss(Random(1), 1))
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


def sample_matrix_graph(random: Random, difficulty: int) -> str:
    """Sample the text of a two-layer network with the squared error, as in the lecture.

    >>> print(sample_matrix_graph(Random(1), 1))
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
