"""Exported Python files, for the standard library, numpy, torch, jax and sympy."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cgprimer.analysis.export.array_helpers import FUNCTIONS, METHODS
from cgprimer.analysis.export.check_points import CheckPoint
from cgprimer.analysis.export.float_helpers import collect_definitions
from cgprimer.analysis.export.program_statements import Exported, Line, Routine
from cgprimer.analysis.export.sympy_code import SYMPY
from cgprimer.analysis.export.target_languages import (
    INFIX,
    UNARY,
    Language,
    align_comments,
    define_python_function,
)
from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.operations.array_operation import ArrayOperation
from cgprimer.core.operations.array_shapes import convert_index_entry
from cgprimer.core.operations.batch_operations import BatchMean
from cgprimer.core.operations.element_operations import Concatenate, Scatter, Take
from cgprimer.core.operations.matrix_operations import Matmul
from cgprimer.core.operations.shape_operations import (
    Broadcast,
    Maximum,
    Reshape,
    Sum,
    Transpose,
)
from cgprimer.support.array_values import all_finite

ARRAYS = ("numpy", "torch", "jax")
_PREFIX = {"numpy": "np", "torch": "torch", "jax": "jnp"}


_SCALAR = {
    "distance": """
def distance(a):
    \"\"\"The size of a number, 1 or more, rounded down to a power of two.\"\"\"
    size = abs(a) if math.isfinite(a) else 1.0
    return math.ldexp(1.0, math.frexp(max(1.0, size))[1] - 1)""",
    "same": """
def same(found, expected, within):
    \"\"\"Whether a number is right, an infinite one and one that is none, too.\"\"\"
    alike = found == expected or (found != found and expected != expected)
    return alike or abs(found - expected) <= within""",
}
PYTHON = Language(
    texts={
        **{name: text for name, text in INFIX.items() if name != "div"},
        "pow": "power({a}, {b})", "abs": "abs({a})", "max": "maximum({a}, {b})",
        "min": "minimum({a}, {b})", "where": "({b} if {a} != 0.0 else {c})",
        "less": "float({a} < {b})", "equal": "float({a} == {b})",
    },
    define=define_python_function,
    helpers={**collect_definitions(), **_SCALAR},
    special=("inf", "nan"),
)  # fmt: skip


def _format_index(prefix: str, array: str, key: Sequence[Any]) -> str:
    """Return array indexing code; torch lacks negative slice steps and flips the axis instead."""
    parts, flipped_axes, axes = [], [], 0
    for part in reversed(key):
        if isinstance(part, range):
            axes += 1
            if prefix == "torch" and part.step < 0:
                flipped_axes.append(-axes)
            positions = part[::-1] if -axes in flipped_axes else part
            stop, step = positions.stop, positions.step
            text = f"{positions.start}:{'' if stop < 0 else stop}" + (
                f":{step}" if step != 1 else ""
            )
            parts.append(text)
        elif isinstance(part, tuple):
            indices = convert_index_entry(part)
            axes += indices.ndim
            constructor = "tensor" if prefix == "torch" else "array"
            parts.append(f"{prefix}.{constructor}({indices.tolist()})")
        else:
            parts.append(str(part))
    text = f"{array}[..., {', '.join(reversed(parts))}]"
    return f"torch.flip({text}, {tuple(flipped_axes)})" if flipped_axes else text


def _create_array_writer(prefix: str) -> Callable[[ArrayOperation, Line, list[str]], str]:
    """Create the function that emits array operations as calls to a Python library."""
    forms = {(1, 1): "...i,...i->...", (2, 1): "...ij,...j->...i", (1, 2): "...i,...ij->...j"}

    def write(operation: ArrayOperation, line: Line, operands: list[str]) -> str:
        """Return the code that applies an array operation to its operands."""
        a = operands[0]
        match operation:
            case Matmul(2, 2):
                return f"{a} @ {operands[1]}"
            case Matmul():
                return f'{prefix}.einsum("{forms[operation.ranks]}", {a}, {operands[1]})'
            case Take(key):
                return _format_index(prefix, a, key)
            case Sum(axes):
                return f"{prefix}.sum({a}, {axes})"
            case Maximum(axes):
                return f"{prefix}.amax({a}, {axes})"
            case Scatter(key, shape):
                positions = f"{prefix}.arange({math.prod(shape)}).reshape({shape})"
                return f"scattered({a}, {_format_index(prefix, positions, key)}, {shape})"
            case Concatenate(axis):
                return f"joined([{', '.join(operands)}], {axis}, {line.ranks[0]})"
            case Transpose(axes):
                return f"permuted({a}, {axes})"
            case BatchMean(rank):
                return f"batch_mean({a}, {rank})"
            case Reshape(rank, shape):
                return f"reshaped({a}, {rank}, {shape})"
            case Broadcast(rank, shape):
                return f"repeated({a}, {rank}, {shape})"
        raise TypeError(f"unsupported array operation: {operation}")

    return write


def _create_language(target: str) -> Language:
    """Create the target language for Python code that uses an array library, such as numpy."""
    p = _PREFIX[target]
    texts = {
        **INFIX, **{name: f"{p}.{name}({{a}})" for name in UNARY}, "pow": "({a} ** {b})",
        "abs": f"{p}.abs({{a}})", "max": f"{p}.maximum({{a}}, {{b}})",
        "min": f"{p}.minimum({{a}}, {{b}})", "logaddexp": f"{p}.logaddexp({{a}}, {{b}})",
        "where": f"{p}.where({{a}} != 0.0, {{b}}, {{c}})",
        "less": "(({a} < {b}) * 1.0)", "equal": "(({a} == {b}) * 1.0)",
        **METHODS[target],
    }  # fmt: skip
    constant = "number({0})" if target == "torch" else "{0}"
    return Language(
        texts,
        define_python_function,
        FUNCTIONS[target],
        constant=constant,
        structural=_create_array_writer(p),
    )


_MAX_FORMULA_LINES = 200  # of a value that sympy expands to one formula
_IGNORED_BY_SYMPY = {"stop_gradient"}
LANGUAGES = {"python": PYTHON, "sympy": SYMPY, **{t: _create_language(t) for t in ARRAYS}}
_RESERVED = """
    math sys sympy np torch jax jnp inf isnan nan copysign value gradient tangent found wrong
    autograd batch main move slopes samples float abs range tuple dict zip getattr print POINTS
    True False None
"""
_CHECKS = '''
def found(**at):
    """The value and the slopes at a point, by name."""
    slopes = {f"d OF / d {name}": slope for name, slope in gradient(**at).items()}
    return {"OF": value(**at), **slopes}


def wrong(place, numbers, point, near=None):
    """How many of some numbers are wrong; each is printed."""
    count = 0
    for name, number in numbers.items():
        right = point["right"][name]
        good = same(number, right, near(right) if near else point["within"][name])
        count += not good
        shown = SHOWN
        print("ok   " if good else "WRONG", place, name, "=", shown, "" if good else f"not {right}")
    return count
'''
_AUTOGRAD = {
    "torch": '''
def autograd(**at):
    """The slopes by torch's own reverse mode, where it finds numbers."""
    leaves = dict(zip(at, (a.clone().requires_grad_() for a in arrays(*at.values()))))
    result = value(**leaves)
    if result.requires_grad:
        result.backward()
    slopes = {name: torch.zeros_like(a) if a.grad is None else a.grad for name, a in leaves.items()}
    found = {f"d OF / d {name}": slopes[here] for name, here in ARGUMENTS}
    return {name: slope for name, slope in found.items() if np.isfinite(np.asarray(slope)).all()}
''',
    "jax": '''
def autograd(**at):
    """The slopes by jax's own reverse mode, where it finds numbers."""
    slopes = jax.grad(lambda point: value(**point))(dict(zip(at, arrays(*at.values()))))
    found = {f"d OF / d {name}": slopes[here] for name, here in ARGUMENTS}
    return {name: slope for name, slope in found.items() if np.isfinite(np.asarray(slope)).all()}
''',
    "sympy": '''
def autograd(**at):
    """The slopes that sympy derives from the formula of the value."""
    symbols = {name: sympy.Symbol(name, real=True) for name in at}
    formula, point = value(**symbols), {symbols[name]: number for name, number in at.items()}
    slopes = {f"d OF / d {name}": sympy.diff(formula, symbols[here]) for name, here in ARGUMENTS}
    return {name: sympy.N(slope.subs(point)) for name, slope in slopes.items()}
''',
}
_BATCH = '''
def batch():
    """How many numbers are wrong when all points are the samples of one batch."""
    names = POINTS[0]["at"]
    rows = found(**{n: P.stack([arrays(point["at"][n])[0] for point in POINTS]) for n in names})
    return sum(
        wrong(f"sample {k}:", {name: numbers[k] for name, numbers in rows.items()}, point)
        for k, point in enumerate(POINTS)
    )
'''
_MAIN = '''
def main():
    """Check all that the file says; the exit code is 1 if something is wrong."""
    count = 0
    for k, point in enumerate(POINTS):
        count += wrong(f"point {k}:", found(**point["at"]), point)
CHECKS    print(f"{count} wrong" if count else "all right")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
'''
_BY_AUTOGRAD = """\
        if point["smooth"]:  # at a kink others have their own conventions
            near = lambda right: NEAR * (1 + SIZE)
            count += wrong(f"point {k}, by LIBRARY:", autograd(**point["at"]), point, near)
"""


def create_reserved_test(target: str) -> Callable[[str], bool]:
    """Create a predicate that tells whether Python or the exported file reserves a word."""
    words = {*_RESERVED.split(), *LANGUAGES[target].list_words()}
    return lambda name: name in words or keyword.iskeyword(name)


def build_python_file(
    exported: Exported, points: Sequence[CheckPoint], target: str, header: str
) -> str:
    """Return the content of a Python file that computes the graph and its derivatives.

    Args:
        exported: the graph and its derivative program.
        points: the points at which the file checks itself.
        target: ``python``, ``numpy``, ``torch``, ``jax`` or ``sympy``.
        header: the docstring of the file, without quotes and backslashes.
    """
    language, prefix = LANGUAGES[target], _PREFIX.get(target, "")
    functions = list(_define_functions(exported, language, prefix))
    used = {n for n, _ in exported.program.tape.instructions}
    checks, main = [_CHECKS], _MAIN
    if target == "sympy":
        points = [point for point in points if all(map(all_finite, point.right.values()))]
    leaves = {leaf.name for leaf in exported.leaves}
    is_short = len(exported.value.lines) < _MAX_FORMULA_LINES
    if target in _AUTOGRAD and (prefix or (is_short and not used & _IGNORED_BY_SYMPY)):
        pairs = tuple((name, exported.idents[name]) for name in exported.wrt if name in leaves)
        checks.append(_AUTOGRAD[target].replace("ARGUMENTS", repr(pairs)))
        near = _BY_AUTOGRAD.replace("NEAR", "1e-5" if exported.differences else "1e-9")
        near = near.replace("SIZE", "abs(np.asarray(right))" if prefix else "abs(right)")
        main = main.replace("CHECKS", near.replace("LIBRARY", target) + "CHECKS")
    if prefix and not any(operator_name(name) == "batch_mean" for name in used):
        checks.append(_BATCH.replace("P.", f"{prefix}."))
        main = main.replace("CHECKS", "    count += batch()\n")
    shown = 'getattr(number, "tolist", lambda: number)()' if prefix else "number"
    checks[0] = _CHECKS.replace("SHOWN", "sympy.N(number)" if target == "sympy" else shown)
    checks = [text.replace("OF", exported.of) for text in (*checks, main.replace("CHECKS", ""))]
    helpers = language.collect_helpers(*functions, *checks)
    head = f'"""{header}\n"""\n\n' + _IMPORTS[target]
    parts = [head, *helpers, *functions, _format_points(exported, points, language), *checks]
    return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"


_IMPORTS = {
    "sympy": "import sys\n\nimport sympy",
    "python": "import math\nimport sys\nfrom math import copysign, inf, isnan, nan",
    "numpy": "import math\nimport sys\n\nimport numpy as np",
    "torch": "import math\nimport sys\n\nimport numpy as np\nimport torch\n\n"
    "torch.set_default_dtype(torch.float64)",
    "jax": "import math\nimport sys\n\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\n\n"
    'jax.config.update("jax_enable_x64", True)',
}


def _define_functions(exported: Exported, language: Language, prefix: str) -> Iterator[str]:
    """Yield the Python code for ``value``, ``tangent`` (forward mode only) and ``gradient``."""
    batch = ", or at every sample of a batch: samples are the first axes" if prefix else ""
    of = f'"""{exported.of} at a point{batch}."""'
    yield _define_routine(
        "value", exported.value, language, prefix, of, [f"return {exported.value.results[0]}"]
    )
    arguments, seeds = ", ".join(exported.arguments), exported.seeds
    slopes: dict[str, str] = {}
    before: list[str] = []
    if exported.differences:
        before.append("slopes = {}")
        for name, size, quotient in exported.quotients():
            slopes[name] = f'slopes["{name}"]'
            before += [f"move = {size}", f"{slopes[name]} = {quotient}"]
    elif seeds:
        (result,) = exported.sweep.results
        along = (
            f'"""The derivative of {exported.of} along a direction: each name times its seed."""'
        )
        yield _define_routine(
            "tangent", exported.sweep, language, prefix, along, [f"return {result}"]
        )
        for name in exported.wrt:
            seed_values = [f"{s}={float(s == seeds[name])}" for s in seeds.values()]
            slopes[name] = f"tangent({', '.join([arguments, *seed_values])})"
    else:
        slopes = dict(zip(exported.wrt, exported.sweep.results, strict=True))
    if prefix:
        ranks = [(exported.idents[f.name], len(f.shape)) for f in exported.leaves]
        leads = [f"{name}.shape" + (f"[:-{axes}]" if axes else "") for name, axes in ranks]
        before.append(f"samples = {prefix}.broadcast_shapes({', '.join(leads)})")
        for name, slope in slopes.items():
            shape = f", {exported.shape(name)}" if exported.shape(name) else ""
            slopes[name] = f"spread({slope}, samples{shape})"
    entries = [f'    "{name}": {slope},' for name, slope in slopes.items()]
    routine = (
        exported.sweep
        if not (exported.differences or seeds)
        else Routine(exported.arguments, (), ())
    )
    docstring = f'"""The derivatives of {exported.of}, by name: {exported.method}."""'
    end = [*before, "return {", *entries, "}"]
    yield _define_routine("gradient", routine, language, prefix, docstring, end)


def _define_routine(
    name: str, routine: Routine, language: Language, prefix: str, docstring: str, end: list[str]
) -> str:
    """Return the Python definition of an exported function.

    Args:
        name: its name.
        routine: its arguments and instructions.
        language: the target language.
        prefix: the name of the imported array library, if any.
        docstring: its docstring, in quotes.
        end: its last lines of code.
    """
    parameters = ", ".join(routine.arguments)
    body = [(docstring, "")]
    if prefix:
        comma = "," if len(routine.arguments) == 1 else ""
        body.append((f"{parameters}{comma} = arrays({parameters})", ""))
    for line in routine.lines:
        if line.begins:
            body.append(("# the derivative", ""))
        mark = "# " if line.alias else ""
        body.append((f"{mark}{line.name} = {language.format_right_side(line)}", line.note))
    lines = align_comments([(f"    {code}", note) for code, note in body], "#")
    decorator = ['@np.errstate(all="ignore")'] if prefix == "np" else []
    return "\n".join(
        [*decorator, f"def {name}({parameters}):", *lines, *(f"    {line}" for line in end)]
    )


def _format_points(exported: Exported, points: Sequence[CheckPoint], language: Language) -> str:
    """Return the Python code for the check points and their expected values."""

    def format_value(value: Any) -> str:
        """Format a float, an array or a list as Python code."""
        if isinstance(value, list):
            return f"[{', '.join(map(format_value, value))}]"
        if not isinstance(value, float):
            return format_value(value.tolist())
        return repr(value) if math.isfinite(value) else language.format_number(value).strip("()")

    def format_entry(key: str, values: Mapping[str, Any]) -> str:
        """Format a dictionary as one entry of a check point in Python code."""
        entries = ", ".join([f'"{name}": {format_value(value)}' for name, value in values.items()])
        return f'        "{key}": {{{entries}}},'

    lines = ["# Points, what is right there, and by how much rounding errors may move each number."]
    lines.append("POINTS = [")
    labels = {"": exported.of, **{name: f"d {exported.of} / d {name}" for name in exported.wrt}}
    for point in points:
        lines += [
            "    {",
            format_entry("at", {exported.idents[n]: v for n, v in point.at.items()}),
            format_entry("right", {labels[n]: v for n, v in point.right.items()}),
            format_entry("within", {labels[n]: v for n, v in point.rounding.items()}),
            f'        "smooth": {point.smooth},',
            "    },",
        ]
    return "\n".join([*lines, "]"])
