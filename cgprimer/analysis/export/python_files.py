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
from cgprimer.support.array_values import all_finite

ARRAYS = ("numpy", "torch", "jax")
_PREFIX = {"numpy": "np", "torch": "torch", "jax": "jnp"}


_SCALAR = {
    "compute_scale": """
def compute_scale(a):
    \"\"\"Return max(1, abs(a)), rounded down to a power of 2.\"\"\"
    magnitude = abs(a) if math.isfinite(a) else 1.0
    return math.ldexp(1.0, math.frexp(max(1.0, magnitude))[1] - 1)""",
    "is_close": """
def is_close(result, expected, tolerance):
    \"\"\"Return whether a number is within the tolerance; nan equals nan.\"\"\"
    same = result == expected or (isnan(result) and isnan(expected))
    return same or abs(result - expected) <= tolerance""",
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
        # numpy is imported only for arrays.
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
                return f"scatter_add({a}, {_format_index(prefix, positions, key)}, {shape})"
            case Concatenate(axis):
                return f"concatenate_arrays([{', '.join(operands)}], {axis}, {line.ranks[0]})"
            case Transpose(axes):
                return f"permute_axes({a}, {axes})"
            case BatchMean(rank):
                return f"batch_mean({a}, {rank})"
            case Reshape(rank, shape):
                return f"reshape_array({a}, {rank}, {shape})"
            case Broadcast(rank, shape):
                return f"broadcast_array({a}, {rank}, {shape})"
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
    constant = "to_tensor({0})" if target == "torch" else "{0}"
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
    math sys sympy np torch jax jnp inf isnan nan copysign value gradient tangent
    compute_results count_wrong autograd check_batch main step_size derivatives batch_shape float
    abs range tuple dict zip getattr print POINTS True False None
"""
_CHECKS = '''
def compute_results(**at):
    """Return OF and its derivatives at a point, keyed by name."""
    derivatives = {f"d OF / d {name}": result for name, result in gradient(**at).items()}
    return {"OF": value(**at), **derivatives}


def count_wrong(label, results, pointPARAMETER):
    """Print each result and return how many are wrong."""
    n_wrong = 0
    for name, result in results.items():
        expected = point["right"][name]
        tolerance = point["within"][name]TOLERANCE
        correct = is_close(result, expected, tolerance)
        n_wrong += not correct
        verdict = "ok   " if correct else "WRONG"
        remark = "" if correct else f", expected {expected}"
        print(f"{verdict} {label} {name} = {SHOWN}{remark}")
    return n_wrong
'''
_RELATIVE_TOLERANCE = """
        if relative_tolerance is not None:
            tolerance = relative_tolerance * (1 + MAGNITUDE)"""
_DIFFERENTIATED_BY = {
    "torch": "torch.autograd",
    "jax": "jax.grad",
    "sympy": "sympy.diff",
}
_AUTOGRAD = {
    "torch": '''
def autograd(**at):
    """Return the derivatives from torch.autograd, without those that are not finite."""
    leaves = dict(zip(at, (a.clone().requires_grad_() for a in to_arrays(*at.values()))))
    result = value(**leaves)
    if result.requires_grad:
        result.backward()
    grads = {name: torch.zeros_like(a) if a.grad is None else a.grad for name, a in leaves.items()}
    derivatives = {f"d OF / d {name}": grads[argument] for name, argument in ARGUMENTS}
    return {name: d for name, d in derivatives.items() if np.isfinite(np.asarray(d)).all()}
''',
    "jax": '''
def autograd(**at):
    """Return the derivatives from jax.grad, without those that are not finite."""
    grads = jax.grad(lambda point: value(**point))(dict(zip(at, to_arrays(*at.values()))))
    derivatives = {f"d OF / d {name}": grads[argument] for name, argument in ARGUMENTS}
    return {name: d for name, d in derivatives.items() if np.isfinite(np.asarray(d)).all()}
''',
    "sympy": '''
def autograd(**at):
    """Return the derivatives that sympy.diff computes from the formula of OF."""
    symbols = {name: sympy.Symbol(name, real=True) for name in at}
    formula, point = value(**symbols), {symbols[name]: number for name, number in at.items()}
    formulas = {
        f"d OF / d {name}": sympy.diff(formula, symbols[argument]) for name, argument in ARGUMENTS
    }
    return {name: sympy.N(d.subs(point)) for name, d in formulas.items()}
''',
}
_BATCH = '''
def check_batch():
    """Evaluate all points as one batch and return how many results are wrong."""
    names = POINTS[0]["at"]
    batch = {n: P.stack([to_arrays(point["at"][n])[0] for point in POINTS]) for n in names}
    results = compute_results(**batch)
    return sum(
        count_wrong(f"sample {k}:", {name: result[k] for name, result in results.items()}, point)
        for k, point in enumerate(POINTS)
    )
'''
_MAIN = '''
def main():
    """Check all results and return the exit code: 1 if a result is wrong, otherwise 0."""
    n_wrong = 0
    for k, point in enumerate(POINTS):
        n_wrong += count_wrong(f"point {k}:", compute_results(**point["at"]), point)
CHECKS    print(f"wrong results: {n_wrong}" if n_wrong else "all checks passed")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
'''
_BY_AUTOGRAD = """\
        if point["smooth"]:  # at kinks and ties, libraries use different conventions
            derivatives = autograd(**point["at"])
            n_wrong += count_wrong(f"point {k}, by LIBRARY:", derivatives, point, TOLERANCE)
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
    parameter = tolerance = ""
    if target == "sympy":
        points = [point for point in points if all(map(all_finite, point.right.values()))]
    leaves = {leaf.name for leaf in exported.leaves}
    is_short = len(exported.value.lines) < _MAX_FORMULA_LINES
    if target in _AUTOGRAD and (prefix or (is_short and not used & _IGNORED_BY_SYMPY)):
        pairs = tuple((name, exported.idents[name]) for name in exported.wrt if name in leaves)
        checks.append(_AUTOGRAD[target].replace("ARGUMENTS", repr(pairs)))
        comparison = _BY_AUTOGRAD.replace("TOLERANCE", "1e-5" if exported.differences else "1e-9")
        comparison = comparison.replace("LIBRARY", _DIFFERENTIATED_BY[target])
        main = main.replace("CHECKS", comparison + "CHECKS")
        magnitude = "abs(np.asarray(expected))" if prefix else "abs(expected)"
        parameter = ", relative_tolerance=None"
        tolerance = _RELATIVE_TOLERANCE.replace("MAGNITUDE", magnitude)
    if prefix and not any(operator_name(name) == "batch_mean" for name in used):
        checks.append(_BATCH.replace("P.", f"{prefix}."))
        main = main.replace("CHECKS", "    n_wrong += check_batch()\n")
    shown = "np.asarray(result).tolist()" if prefix else "result"
    checks[0] = (
        _CHECKS.replace("SHOWN", "sympy.N(result)" if target == "sympy" else shown)
        .replace("PARAMETER", parameter)
        .replace("TOLERANCE", tolerance)
    )
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
    batch = ", at one point or for each sample of a batch (leading axes)" if prefix else ""
    of = f'"""Return {exported.of}{batch}."""'
    yield _define_routine(
        "value", exported.value, language, prefix, of, [f"return {exported.value.results[0]}"]
    )
    arguments, seeds = ", ".join(exported.arguments), exported.seeds
    derivatives: dict[str, str] = {}
    before: list[str] = []
    if exported.differences:
        before.append("derivatives = {}")
        for name, size, quotient in exported.quotients():
            derivatives[name] = f'derivatives["{name}"]'
            before += [f"step_size = {size}", f"{derivatives[name]} = {quotient}"]
    elif seeds:
        (result,) = exported.sweep.results
        along = f'"""{exported.describe_tangent()}"""'
        yield _define_routine(
            "tangent", exported.sweep, language, prefix, along, [f"return {result}"]
        )
        for name in exported.wrt:
            seed_values = [f"{s}={float(s == seeds[name])}" for s in seeds.values()]
            derivatives[name] = f"tangent({', '.join([arguments, *seed_values])})"
    else:
        derivatives = dict(zip(exported.wrt, exported.sweep.results, strict=True))
    if prefix:
        ranks = [(exported.idents[f.name], len(f.shape)) for f in exported.leaves]
        leads = [f"{name}.shape" + (f"[:-{axes}]" if axes else "") for name, axes in ranks]
        before.append(f"batch_shape = {prefix}.broadcast_shapes({', '.join(leads)})")
        for name, derivative in derivatives.items():
            shape = f", {exported.shape(name)}" if exported.shape(name) else ""
            derivatives[name] = f"broadcast_to_batch({derivative}, batch_shape{shape})"
    entries = [f'    "{name}": {derivative},' for name, derivative in derivatives.items()]
    routine = (
        exported.sweep
        if not (exported.differences or seeds)
        else Routine(exported.arguments, (), ())
    )
    docstring = f'"""Return the derivatives of {exported.of}, keyed by name ({exported.method})."""'
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
        body.append((f"{parameters}{comma} = to_arrays({parameters})", ""))
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
        return (
            repr(float(value))
            if math.isfinite(value)
            else language.format_number(value).strip("()")
        )

    def format_entry(key: str, values: Mapping[str, Any]) -> str:
        """Format a dictionary as one entry of a check point in Python code."""
        entries = ", ".join([f'"{name}": {format_value(value)}' for name, value in values.items()])
        return f'        "{key}": {{{entries}}},'

    lines = ["# Test points, reference values and tolerances."]
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
