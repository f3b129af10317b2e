"""The house rules: direction of imports, what is loaded, what is never called."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import cgprimer

PACKAGE = Path(cgprimer.__file__).parent
ROOMS = (
    "errors",
    "files",
    "cache",
    "collector",
    "primitives",
    "language",
    "graph",
    "tapes",
    "differentiators",
    "execution",
    "derivatives",
    "data",
    "training",
    "teaching",
    "drawing",
    "stepping",
    "plot",
    "lecture",
    "cli",
)
LONGEST = 400  # lines that are read in one sitting

# Imports inside a function that go to a later room, (module, imported room): why it must be so.
ALLOWED_BACKWARDS = {
    (
        "primitives",
        "language",
    ): "the partials are texts in the language, which needs the table's names",
    (
        "graph",
        "drawing",
    ): "a notebook asks the graph itself for its picture (_repr_svg_)",
    (
        "teaching",
        "drawing",
    ): "a notebook asks a comparison itself for its picture (_repr_html_)",
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    """``tapes.lower`` for ``cgprimer/tapes/lower.py``; empty for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """The room of a dotted name below ``cgprimer``; ``__main__`` is the command line's door."""
    first = module.split(".", maxsplit=1)[0]
    return "cli" if first == "__main__" else first


@dataclass(frozen=True)
class Import:
    module: str  # below cgprimer
    line: int
    where: str  # "module", "function" or "typing"


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(
    tree: ast.AST, own: str, *, where: str = "module", package: bool = False
) -> Iterator[Import]:
    """Every import of something of cgprimer's, absolute or relative."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "cgprimer":
                    yield Import(alias.name.partition(".")[2], node.lineno, where)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = ("cgprimer." + own if own else "cgprimer").split(".")
                up = node.level - (1 if package else 0)
                base = ".".join([*parts[: len(parts) - up], *([base] if base else [])])
            if base == "cgprimer":
                yield from (Import(alias.name, node.lineno, where) for alias in node.names)
            elif base.startswith("cgprimer."):
                yield Import(base.partition(".")[2], node.lineno, where)
        else:
            inner = where
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                inner = "function"
            elif _is_type_checking(node):
                inner = "typing"
            yield from imports(node, own, where=inner, package=package)


def imports_of(path: Path) -> list[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return list(imports(tree, dotted(path), package=path.name == "__init__.py"))


def test_the_reader_of_imports_sees_what_there_is_to_see() -> None:
    text = (
        "import cgprimer.graph\nimport numpy\nfrom cgprimer import errors\nfrom . import show\n"
        "from .tape import Tape\nfrom ..graph import parse\n"
        "if TYPE_CHECKING:\n    from cgprimer.cli import main\n"
        "class A:\n    def f(self):\n        try:\n            from cgprimer.training import loop\n"
        "        finally:\n            pass\n"
    )
    found = [(i.module, i.where) for i in imports(ast.parse(text), "tapes.lower")]
    assert found == [
        ("graph", "module"),
        ("errors", "module"),
        ("tapes", "module"),
        ("tapes.tape", "module"),
        ("graph", "module"),
        ("cli", "typing"),
        ("training", "function"),
    ]


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_module_imports_only_from_its_own_or_an_earlier_room(path: Path) -> None:
    name = dotted(path)
    if not name:  # the package itself: public names, loaded when asked for
        assert [i for i in imports_of(path) if i.where == "module"] == []
        return
    assert room(name) in ROOMS, (
        f"{name} stands in no room: add it to ROOMS where the data walks through it"
    )
    here = ROOMS.index(room(name))
    wrong = []
    for found in imports_of(path):
        there = room(found.module)
        if there not in ROOMS:  # a public name of the package, such as cgprimer.parse
            there = room(cgprimer._PUBLIC.get(there, there))
        if there == "__version__":
            continue
        assert there in ROOMS, f"{name}:{found.line} imports from the unknown room {there!r}"
        allowed = found.where == "function" and (room(name), there) in ALLOWED_BACKWARDS
        if ROOMS.index(there) > here and not allowed:
            wrong.append(f"{path}:{found.line} imports {found.module} (in a {found.where})")
    assert wrong == []


def test_the_list_of_exceptions_has_none_that_is_not_used() -> None:
    used = {
        (room(dotted(path)), room(found.module))
        for path in MODULES
        for found in imports_of(path)
        if found.where == "function"
    }
    assert set(ALLOWED_BACKWARDS) <= used


def test_rooms_have_no_cycle_at_module_level_inside_themselves() -> None:
    graph = {
        dotted(path): {i.module for i in imports_of(path) if i.where == "module"}
        for path in MODULES
    }
    done: set[str] = set()
    while len(done) < len(graph):
        free = [
            m
            for m, needs in graph.items()
            if m not in done and not ((needs & set(graph)) - done - {m})
        ]
        assert free, f"these modules import each other: {sorted(set(graph) - done)}"
        done.update(free)


# --- what is loaded ------------------------------------------------------------------------------

HEAVY = (
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
)


def loaded_after(program: str) -> set[str]:
    report = "\nimport sys; print('\\n'.join(sorted({name.split('.')[0] for name in sys.modules})))"
    # -S would hide the editable install; -I keeps the user's own site and paths out.
    run = subprocess.run(
        [sys.executable, "-I", "-c", program + report], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_importing_the_package_loads_none_of_the_large_libraries() -> None:
    before = loaded_after("pass")  # an editable install's hook, coverage and the like
    assert (
        loaded_after("import cgprimer; cgprimer.__version__; dir(cgprimer)") - before & set(HEAVY)
        == set()
    )


def test_a_gradient_loads_only_numpy() -> None:
    program = "import cgprimer; cgprimer.gradient(cgprimer.parse('xw = k*xa^2'), {'k': 1, 'xa': 2})"
    assert loaded_after(program) & set(HEAVY) == {"numpy"}


# --- what is never done ---------------------------------------------------------------------------


# The one place that executes text, and how often: kernels for a GPU, written from a verified tape,
# in which values are called v0, v1, ...; numba compiles functions, so there must be functions.
# Nothing that a user wrote enters the text: tests/cuda/test_cuda_text.py looks at it.
GENERATED = {"execution.cuda.generated": ["exec"]}


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_nothing_evaluates_or_executes_text(path: Path) -> None:
    calls = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and node.id in ("eval", "exec", "__builtins__"):
            calls.append(f"{path}:{node.lineno} {node.id}")
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in ("eval", "exec")
            and ast.unparse(node.value) == "builtins"
        ):
            calls.append(f"{path}:{node.lineno} builtins.{node.attr}")
    assert [call.split()[-1] for call in calls] == GENERATED.get(dotted(path), []), calls


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_module_is_read_in_one_sitting_and_named_for_what_it_holds(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST
    assert path.stem not in ("utils", "util", "helpers", "misc")


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_no_module_hides_a_library_by_its_name(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names
    }
    imported |= {
        (n.module or "").split(".")[0]
        for n in ast.walk(tree)
        if isinstance(n, ast.ImportFrom) and not n.level
    }
    assert path.stem not in imported
    assert path.stem not in HEAVY


# --- the public names --------------------------------------------------------------------------


def test_the_public_names_are_listed_once_and_seen_by_dir() -> None:
    assert len(cgprimer.__all__) == len(set(cgprimer.__all__))
    assert set(cgprimer.__all__) <= set(dir(cgprimer))


@pytest.mark.parametrize("name", cgprimer.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(cgprimer, name)
    if name == "__version__":
        assert value[0].isdigit()
        return
    assert value.__doc__
    assert value.__doc__.strip()
    if name in cgprimer._MODULES:
        assert value is importlib.import_module(f"cgprimer.{name}")
        return
    assert value is getattr(importlib.import_module(f"cgprimer.{cgprimer._PUBLIC[name]}"), name)


def test_no_public_name_is_also_the_name_of_a_room() -> None:
    # Importing cgprimer.data would put the module over a public function cgprimer.data.
    names = set(cgprimer.__all__) - set(cgprimer._MODULES)  # these are the rooms themselves
    assert names & {dotted(path).split(".")[0] for path in MODULES} == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = cgprimer.nothing_of_the_kind


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_every_module_imports_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if not text.strip():
        return  # an empty __init__ has nothing to explain
    assert ast.get_docstring(ast.parse(text))
    if path.stem != "__main__":
        importlib.import_module(f"cgprimer.{dotted(path)}".rstrip("."))
