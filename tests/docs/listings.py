"""Listings of the package's own code in the documentation, taken from the code.

A comment says what the block below it shows: ``from FILE: NAME, NAME``. A name is a function, a
class, an assignment, a method as ``Class.method``, ``__doc__`` of the module, or the first argument
of a call, as the rows of the table have it. ``NAME @ START`` is the first statement within that
begins with START. Docstrings are left out.
"""

from __future__ import annotations

import ast
import re
import textwrap
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTING = re.compile(r"^<!-- from (\S+): (.+?) -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINES, COLUMNS = 32, 100  # of 14 points on a slide of 13.33 by 7.5 inches


def with_listings(text: str) -> str:
    """The text with its listings taken anew from the code."""
    return LISTING.sub(
        lambda m: f"<!-- from {m[1]}: {m[2]} -->\n```{m[3]}\n{listed(*m.group(1, 2))}```", text
    )


@cache
def listed(file: str, names: str) -> str:
    """What a file has under these names."""
    source = (ROOT / file).read_text(encoding="utf-8")
    shown = [_shown(source, name) for name in names.split(", ")]
    apart = "\n" if any(text.startswith(("def ", "class ", "@")) for text in shown) else ""
    return apart.join(shown)


def _shown(source: str, name: str) -> str:
    name, _, start = name.partition(" @ ")
    module = ast.parse(source)
    if name == "__doc__":
        return f"{ast.get_docstring(module)}\n"
    node: ast.AST = module
    for part in name.split("."):
        node = next(n for n in ast.iter_child_nodes(node) if part in _names(n))
    lines = source.splitlines()
    if start:
        node = next(
            n for n in ast.walk(node)
            if isinstance(n, ast.stmt) and lines[n.lineno - 1].lstrip().startswith(start)
        )  # fmt: skip
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])  # type: ignore[attr-defined]
    kept = dict(enumerate(lines[first - 1 : node.end_lineno], first))  # type: ignore[attr-defined]
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(inner):
            assert isinstance(body, list)
            for number in range(body[0].lineno, body[0].end_lineno + 1):
                del kept[number]
            if isinstance(inner, ast.ClassDef):
                kept.pop(body[0].end_lineno + 1, None)  # the empty line behind it
    return textwrap.dedent("\n".join(kept.values())).replace("  # fmt: skip", "") + "\n"


def _names(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Expr(value=ast.Call(args=[ast.Constant(value=value), *_])):
            return [str(value)]
    return []
