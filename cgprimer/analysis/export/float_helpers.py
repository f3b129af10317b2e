"""The package's own functions of floats as text: for files that have Python alone.

They are copied from ``core/operations/float_arithmetic.py`` without annotations: an exported
file computes the same results as the package, to the last digit.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache

from cgprimer.core.operations import float_arithmetic

_KNOWN = re.compile(r"(?<![\w.])_([a-z]\w*)")  # such as _div
_OTHERS = {"pow": "power", "max": "maximum", "min": "minimum", "abs": "absolute"}


@cache
def definitions() -> Mapping[str, str]:
    """Every primitive of Python's, and what they use, as a definition of that name.

    >>> print(definitions()["log10"])
    log10 = suppress_errors(math.log10, pole_at_zero)
    >>> print(definitions()["relu"])
    def relu(a):
        return maximum(a, 0.0)
    """
    tree = ast.parse(inspect.getsource(float_arithmetic))
    return {n: _KNOWN.sub(lambda known: _own(known[1]), text) for n, text in _found(tree)}


def _found(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef):
                    inner.returns = None
                if isinstance(inner, ast.arg):
                    inner.annotation = None
            yield _own(node.name), ast.unparse(node)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_log":
            yield "log", ast.unparse(node)
        elif (
            isinstance(node, ast.AnnAssign)
            and node.value
            and ast.unparse(node.target) == "FUNCTIONS"
        ):
            for name in float_arithmetic._SAME.split():
                yield name, f"{name} = _suppress_errors(math.{name})"
            for part in ast.walk(node.value):
                if isinstance(part, ast.Dict):
                    yield from _entries(part)


def _entries(table: ast.Dict) -> Iterator[tuple[str, str]]:
    for key, value in zip(table.keys, table.values, strict=True):
        assert isinstance(key, ast.Constant)
        name, text = str(key.value), ast.unparse(value)
        if isinstance(value, ast.Lambda):
            given = ast.unparse(value.args)
            yield _own(name), f"def {_own(name)}({given}):\n    return {ast.unparse(value.body)}"
        elif not text.startswith("_") or "(" in text:  # a name that starts so has its own function
            yield _own(name), f"{_own(name)} = {text}"


def _own(name: str) -> str:
    """A primitive's name in a file, where Python's own functions keep theirs."""
    return _OTHERS.get(name.removeprefix("_"), name.removeprefix("_"))
