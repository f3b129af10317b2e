"""The wording rules: names, openings of docstrings, and the lengths of functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.approval import approved
from tests.test_architecture import MODULES, PACKAGE, trees

LONGEST_FUNCTION = 60  # lines without the docstring, which a public function needs in full
BANNED_NAMES = {
    "alone", "apart", "asked", "called", "done", "each", "foretold", "found", "given", "hands",
    "held", "here", "kept", "known", "made", "moment", "named", "of_steps", "own", "placed",
    "relief", "said", "shaped", "taken", "together", "told", "way", "whole", "word",
}  # fmt: skip
BANNED_OPENING = re.compile(
    r"(What|Why|Which|Whether|Of|As|Where|Who|How|The same|One of|All of it)\b"
)
PUBLIC_NAMES = {  # of modules: a contract with users
    "course.checks.sheets.sheet_problems": {"asked"},
    "training.estimators": {"given"},
    "training.objective": {"whole"},
    "training.sweeps": {"given", "named"},
    "training.update_rules": {"given"},
    "visualization.plots.fit_plot": {"found"},
    "visualization.plots.memory_plot": {"kept"},
    "visualization.plots.sweep_plot": {"found"},
    "recording.graph_memory": {"given", "kept"},
}
NAMES = {  # the field of a syntax node with the name that it binds
    ast.Name: "id", ast.Attribute: "attr", ast.FunctionDef: "name", ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name", ast.arg: "arg", ast.alias: "asname", ast.ExceptHandler: "name",
    ast.MatchAs: "name",
}  # fmt: skip
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def offences(tree: ast.Module, module: str) -> Iterator[str]:
    """Yield every offence in a module, as ``line: offence``."""
    allowed = PUBLIC_NAMES.get(module, set())
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        name = getattr(node, NAMES.get(type(node), ""), None) or ""
        bound = not isinstance(getattr(node, "ctx", None), ast.Load)
        if bound and name not in allowed and name.strip("_").lower() in BANNED_NAMES:
            yield f"{line}: the name {name}"
        if isinstance(node, DOCUMENTED):
            docstring = ast.get_docstring(node)
            if opening := BANNED_OPENING.match(docstring or ""):
                yield f"{line}: the docstring of {name or 'the module'} opens with {opening[0]!r}"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - line + 1
                if docstring is not None:
                    lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
                if lines > LONGEST_FUNCTION:
                    yield f"{line}: the function {name} has {lines} lines"


def offences_of_package() -> list[str]:
    """Return the offences in all modules, as ``path:line: offence``."""
    return [
        f"{MODULES[name].relative_to(PACKAGE)}:{offence}"
        for name, tree in trees().items()
        for offence in offences(tree, name)
    ]


def test_the_package_follows_the_wording_rules() -> None:
    assert offences_of_package() == []


def test_each_kind_of_offence_is_noticed() -> None:
    text = (
        '"""Of modules."""\nimport math as here\nfrom b import Kept as _kept\n'
        "class Told:\n    def kept(self, given, *, shaped=1):\n"
        '        """Whether it is."""\n        self.own = [made for made in given]\n'
        "        def broadcast(x):\n"
        '            """Return a value of one shape."""\n' + "            x += 1\n" * 60
    )
    approved("\n".join(sorted(offences(ast.parse(text), "a"))))
    assert list(offences(ast.parse("kept = 1"), "recording.graph_memory")) == []
