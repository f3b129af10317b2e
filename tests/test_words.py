"""The wording rules: names and docstring openings that a reader understands, functions of one page.

``python -m tests.test_words`` prints all offences.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cgprimer

PACKAGE = Path(cgprimer.__file__).parent
PACKAGES = (
    "support", "core", "recording", "backends", "analysis", "training", "visualization", "course",
    "cli",
)  # fmt: skip

LONGEST_FUNCTION = 60  # lines without the docstring, which a public function needs in full
BANNED_NAMES = {
    "alone", "apart", "asked", "called", "done", "each", "foretold", "found", "given", "hands",
    "held", "here", "kept", "known", "made", "moment", "named", "of_steps", "own", "placed",
    "relief", "said", "shaped", "taken", "together", "told", "way", "whole", "word",
}  # fmt: skip
BANNED_OPENING = re.compile(
    r"(What|Why|Which|Whether|Of|As|Where|Who|How|The same|One of|All of it)\b"
)
PUBLIC_NAMES = {  # a contract with users
    "course.checks.sheets.sheet_problems.Problem.asked",
    "training.estimators.Estimator.set_params.given",
    "training.objective.Objective.__init__.whole",
    "training.sweeps.Sweep.named",
    "training.update_rules.Optimizer.but.given",
    "training.sweeps.sweep.given",
    "visualization.plots.fit_plot.fit.found",
    "visualization.plots.memory_plot.memory.kept",
    "visualization.plots.sweep_plot.sweep.found",
    "recording.graph_memory.MemoryRow",
    "recording.graph_memory.MemoryRow.given",
    "recording.graph_memory.Memory.kept",
    "recording.graph_memory.Memory.given",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def names_bound(node: ast.AST) -> Iterator[str]:
    """The names that a syntax node itself binds."""
    match node:
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.Attribute(ctx=ast.Store()):
            yield node.attr
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.arg():
            yield node.arg
        case ast.alias(asname=str(name)):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name


def offences(tree: ast.AST, scope: str) -> Iterator[str]:
    """Every offence in a module, as ``line: offence``; ``scope`` is the module's dotted name."""
    for node in ast.iter_child_nodes(tree):
        for name in names_bound(node):
            if name.strip("_").lower() in BANNED_NAMES and f"{scope}.{name}" not in PUBLIC_NAMES:
                yield f"{node.lineno}: the name {name}"
        inner = scope
        if isinstance(node, Function | ast.ClassDef):
            inner = f"{scope}.{node.name}"
            opening = BANNED_OPENING.match(ast.get_docstring(node) or "")
            if opening:
                yield f"{node.lineno}: the docstring of {node.name} opens with {opening[0]!r}"
            lines = (node.end_lineno or 0) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                docstring = node.body[0]
                lines -= (docstring.end_lineno or 0) - docstring.lineno + 1
            if isinstance(node, Function) and lines > LONGEST_FUNCTION:
                yield f"{node.lineno}: the function {node.name} has {lines} lines"
        yield from offences(node, inner)


def module_offences(text: str, module: str) -> list[str]:
    tree = ast.parse(text)
    opening = BANNED_OPENING.match(ast.get_docstring(tree) or "")
    first = [f"1: the docstring of the module opens with {opening[0]!r}"] if opening else []
    return first + list(offences(tree, module))


def offences_of_package(package: str) -> list[str]:
    """Return the offences in all modules of a package, as ``path:line: offence``."""
    return [
        f"{path.relative_to(PACKAGE)}:{offence}"
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for offence in module_offences(
            path.read_text(encoding="utf-8"),
            ".".join(path.relative_to(PACKAGE).with_suffix("").parts),
        )
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_follow_the_wording_rules(package: str) -> None:
    assert offences_of_package(package) == []


def test_the_rules_notice_each_kind_of_offence() -> None:
    text = (
        '"""Of modules."""\nimport math as here\nfrom b import Kept as _kept\n'
        "class Told:\n    def kept(self, given, *, shaped=1):\n"
        '        """Whether it is."""\n        self.own = [made for made in given]\n'
        "        def broadcast(x):\n"
        '            """Return a value of one shape."""\n' + "            x += 1\n" * 60
    )
    assert [offence.partition(": ")[2] for offence in module_offences(text, "a")] == [
        "the docstring of the module opens with 'Of'",
        "the name here",
        "the name _kept",
        "the name Told",
        "the name kept",
        "the docstring of kept opens with 'Whether'",
        "the function kept has 64 lines",
        "the name given",
        "the name shaped",
        "the name own",
        "the name made",
        "the function broadcast has 61 lines",
    ]
    assert module_offences("class Memory:\n    kept = 1\n", "recording.graph_memory") == []


if __name__ == "__main__":
    for package in PACKAGES:
        print(*offences_of_package(package), sep="\n")
