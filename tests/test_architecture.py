"""The house rules, each a test that lists its offenders."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import cgprimer

PACKAGE = Path(cgprimer.__file__).parent
ROOMS = (  # a module imports only from its own room or from rooms above it
    "errors",
    "files",
    "cache",
    "plugins",
    "core",
    "native",
    "data",
    "training",
    "analysis",
    "pictures",
    "plots",
    "pages",
    "plot",
    "lecture",
    "notebook",
    "cli",
)
LONGEST = 400  # lines that are read in one sitting
HEAVY = [
    "numpy",
    "scipy",
    "sympy",
    "networkx",
    "matplotlib",
    "numba",
    "llvmlite",
    "click",
    "rich",
    "mpmath",
    "pandas",
    "tabulate",
]


def dotted(path: Path) -> str:
    """``core.tape.tape`` for ``cgprimer/core/tape/tape.py``; empty for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


class Import(NamedTuple):
    module: str  # below cgprimer
    line: int
    at_module_level: bool


def imports(tree: ast.AST, own: str, *, top: bool = True) -> Iterator[Import]:
    """Every import of something of cgprimer's: lazy ones, in methods, for types, all of them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "cgprimer":
                    yield Import(alias.name.partition(".")[2], node.lineno, top)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(
                    [*f"cgprimer.{own}".split(".")[: -node.level], *filter(None, [base])]
                )
            if base == "cgprimer":
                yield from (Import(alias.name, node.lineno, top) for alias in node.names)
            elif base.startswith("cgprimer."):
                inside = base.partition(".")[2]
                names = [f"{inside}.{alias.name}" for alias in node.names]
                modules = [name for name in names if name in MODULES]
                yield from (Import(name, node.lineno, top) for name in modules or [inside])
        else:
            typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(node, own, top=top and not (typing_only or function))


def room(module: str) -> str:
    """The room of a dotted name; of a public name, the room that it comes from."""
    module = cgprimer._PUBLIC.get(module) or module
    module = "cli" if module == "__main__" else module
    inside = [r for r in ROOMS if module == r or module.startswith(f"{r}.")]
    return max(inside, key=len, default=module)


def test_the_reader_of_imports_sees_what_there_is_to_see() -> None:
    text = (
        "import cgprimer.core.graph\nimport numpy\nfrom cgprimer import errors\n"
        "from . import printing\nfrom .tape import Tape\nfrom ..graph import parse\n"
        "if TYPE_CHECKING:\n    from cgprimer.cli import main\n"
        "class A:\n    def f(self):\n        try:\n            from cgprimer.training import loop\n"
        "        finally:\n            pass\n"
    )
    assert [(i.module, i.at_module_level) for i in imports(ast.parse(text), "core.tape.x")] == [
        ("core.graph", True),
        ("errors", True),
        ("core.tape.printing", True),
        ("core.tape.tape", True),
        ("core.graph", True),
        ("cli", False),
        ("training.loop", False),
    ]


def test_imports_go_one_way_lazy_ones_and_those_for_types_too() -> None:
    unknown = {room(name) for name in MODULES if name} - set(ROOMS)
    assert unknown == set(), "add the room to ROOMS where the data walks through it"
    wrong = [
        f"{name}:{found.line} imports {found.module}"
        for name in MODULES
        if name  # the package itself: public names, loaded when asked for
        for found in imports(TREES[name], name)
        if found.module != "__version__"
        and ROOMS.index(room(found.module)) > ROOMS.index(room(name))
    ]
    assert wrong == []
    assert [i for i in imports(TREES[""], "") if i.at_module_level] == []


def test_modules_do_not_import_each_other_in_circles() -> None:
    needs = {
        name: {i.module for i in imports(tree, name) if i.at_module_level} & set(MODULES) - {name}
        for name, tree in TREES.items()
    }
    while free := [name for name, wanted in needs.items() if not wanted & set(needs)]:
        for name in free:
            del needs[name]
    assert sorted(needs) == []


def test_nothing_evaluates_or_executes_text() -> None:
    # numba compiles functions, so kernels for a GPU, written from a verified tape in which values
    # are called v0, v1, ..., are executed in one place. tests/cuda looks at that text.
    allowed = {"native.cuda.generated": 1}
    calls: dict[str, int] = {}
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            by_name = isinstance(node, ast.Name) and node.id in ("eval", "exec", "__builtins__")
            by_module = isinstance(node, ast.Attribute) and ast.unparse(node) in (
                "builtins.eval",
                "builtins.exec",
            )
            if by_name or by_module:
                calls[name] = calls.get(name, 0) + 1
    assert calls == allowed


def test_modules_are_read_in_one_sitting_and_named_for_what_they_hold() -> None:
    lengths = {n: len(p.read_text(encoding="utf-8").splitlines()) for n, p in MODULES.items()}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}
    stems = {name: name.rpartition(".")[2] for name in MODULES}
    assert [n for n, s in stems.items() if s in ("utils", "util", "helpers", "misc", *HEAVY)] == []
    for name, tree in TREES.items():
        imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        imported |= {
            n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level
        }
        assert stems[name] not in {module.split(".")[0] for module in imported}, name


# --- what is loaded ------------------------------------------------------------------------------


def loaded_after(program: str) -> set[str]:
    report = "\nimport sys; print('\\n'.join(sorted(sys.modules)))"
    # -I keeps the user's own site and paths out.
    start = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
    run = subprocess.run(
        [sys.executable, "-I", "-c", start + program + report],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


def test_importing_the_package_loads_none_of_the_large_libraries() -> None:
    before = loaded_after("pass")  # an editable install's hook, coverage and the like
    loaded = loaded_after("import cgprimer; cgprimer.__version__; dir(cgprimer)") - before
    assert loaded & set(HEAVY) == set()


def test_a_gradient_loads_only_numpy() -> None:
    program = "import cgprimer; cgprimer.gradient(cgprimer.parse('xw = k*xa^2'), {'k': 1, 'xa': 2})"
    assert loaded_after(program) & set(HEAVY) == {"numpy"}


# --- the public names ----------------------------------------------------------------------------


def test_the_public_names_are_there_and_say_what_they_are() -> None:
    assert len(cgprimer.__all__) == len(set(cgprimer.__all__))
    assert set(cgprimer.__all__) <= set(dir(cgprimer))
    for name in set(cgprimer.__all__) - {"__version__"}:
        value = getattr(cgprimer, name)
        assert (value.__doc__ or "").strip(), name
        module = f"cgprimer.{cgprimer._PUBLIC[name] or name}"
        home = importlib.import_module(module)
        assert value is (getattr(home, name) if cgprimer._PUBLIC[name] else home), name


def test_no_public_name_is_also_the_name_of_a_room() -> None:
    # Importing cgprimer.data would put the module over a public function cgprimer.data.
    names = {name for name, module in cgprimer._PUBLIC.items() if module}  # others are rooms
    assert names & {name.split(".")[0] for name in MODULES} == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = cgprimer.nothing_of_the_kind
