"""Source code of the package's functions on floats, for files that use only Python.

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

_PRIVATE_NAME = re.compile(r"(?<![\w.])_([a-z]\w*)")  # such as _div
_OTHERS = {"pow": "power", "max": "maximum", "min": "minimum", "abs": "absolute"}


@cache
def collect_definitions() -> Mapping[str, str]:
    """Return the Python source code of all primitives on floats, keyed by name.

    >>> print(collect_definitions()["log10"])
    log10 = suppress_errors(math.log10, pole_at_zero)
    >>> print(collect_definitions()["relu"])
    def relu(a):
        return maximum(a, 0.0)
    """
    tree = ast.parse(inspect.getsource(float_arithmetic))
    return {
        name: _PRIVATE_NAME.sub(lambda match: _get_public_name(match[1]), text)
        for name, text in _iterate_definitions(tree)
    }


def _iterate_definitions(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the name and the source code of each definition in a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef):
                    inner.returns = None
                if isinstance(inner, ast.arg):
                    inner.annotation = None
            yield _get_public_name(node.name), ast.unparse(node)
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
                    yield from _iterate_function_entries(part)


def _iterate_function_entries(table: ast.Dict) -> Iterator[tuple[str, str]]:
    """Yield the name and the source code of each function in a dictionary literal."""
    for key, value in zip(table.keys, table.values, strict=True):
        assert isinstance(key, ast.Constant)
        name, text = str(key.value), ast.unparse(value)
        if isinstance(value, ast.Lambda):
            arguments = ast.unparse(value.args)
            yield (
                _get_public_name(name),
                f"def {_get_public_name(name)}({arguments}):\n    return {ast.unparse(value.body)}",
            )
        elif not text.startswith("_") or "(" in text:  # such a name has its own definition
            yield _get_public_name(name), f"{_get_public_name(name)} = {text}"


def _get_public_name(name: str) -> str:
    """Return the name of a primitive in exported files, distinct from Python's built-ins."""
    return _OTHERS.get(name.removeprefix("_"), name.removeprefix("_"))
