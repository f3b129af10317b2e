"""Rules of the architecture: each test lists the modules that break a rule."""

from __future__ import annotations

import ast
import gc
import graphlib
import importlib
import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import cgprimer

PACKAGE = Path(cgprimer.__file__).parent
PACKAGES = (  # a module imports only from its own package or from packages above it
    "errors", "support", "core", "expressions", "tapes", "recording", "networks", "backends",
    "analysis", "training", "visualization", "plot", "course", "lecture", "cli",
)  # fmt: skip
CORE = (  # parts of core, in the same order
    "language", "operations", "tape", "methods", "evaluation", "graph", "loss_expressions",
    "loss_node", "loss_attachment", "derivatives", "edge_partials", "second_derivatives",
    "registration",
)  # fmt: skip
HEAVY = {
    "anywidget", "click", "graphlay", "llvmlite", "matplotlib", "mpmath", "networkx", "numba",
    "numpy", "pandas", "polars", "pyarrow", "rich", "scipy", "sympy", "tabulate",
}  # fmt: skip


def dotted(path: Path) -> str:
    """Return ``core.tape.tape`` for ``cgprimer/core/tape/tape.py``; "" for cgprimer itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax trees of all modules, parsed when a test first needs them."""
    gc.disable()  # collections would take most of the time
    try:
        return {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}
    finally:
        gc.freeze()
        gc.enable()


class Import(NamedTuple):
    importer: str
    line: int
    module: str  # below cgprimer
    at_module_level: bool


def statements(node: ast.AST, *, top: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Yield all statements, and whether each is run when its module is imported."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, field, ()):
            yield statement, top
            lazy = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) or (
                isinstance(statement, ast.If)
                and isinstance(statement.test, ast.Name)
                and statement.test.id == "TYPE_CHECKING"
            )
            yield from statements(statement, top=top and not lazy)


@cache
def all_imports() -> list[Import]:
    """Return every import of a module of cgprimer, also in functions and for types."""
    found = []
    for own, tree in trees().items():
        for node, top in statements(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                parts = f"cgprimer.{own}".split(".")[: -node.level] if node.level else []
                base = ".".join([*parts, *filter(None, [node.module])])
                names = [f"{base}.{alias.name}" for alias in node.names]
                if base != "cgprimer" and not any(inside(name) in MODULES for name in names):
                    names = [base]
            found += [
                Import(own, node.lineno, inside(name), top)  # type: ignore[attr-defined]
                for name in names
                if name.split(".")[0] == "cgprimer"
            ]
    return found


def inside(name: str) -> str:
    """Return a dotted name without ``cgprimer.``."""
    return name.partition(".")[2]


def package_of(module: str) -> str:
    """Return the package of a module, or of the module that defines a public name."""
    module = cgprimer._PUBLIC.get(module) or module
    module = "cli" if module == "__main__" else module
    matching = [p for p in PACKAGES if module == p or module.startswith(f"{p}.")]
    return max(matching, key=len, default=module)


def test_modules_import_only_from_packages_above() -> None:
    """A graph computes its values with the evaluator; lowering knows only a protocol of graphs."""
    unknown = {package_of(name) for name in MODULES if name} - set(PACKAGES)
    assert unknown == set(), "add the package to PACKAGES below the packages that it imports"

    def layer(module: str) -> tuple[int, int]:
        package = package_of(module)
        part = cgprimer._PUBLIC.get(module, module).split(".")[1:2] if package == "core" else []
        return PACKAGES.index(package), CORE.index(part[0]) if part else 0

    checked = [i for i in all_imports() if i.importer and i.module != "__version__"]
    assert {package_of(i.importer) for i in checked if not i.at_module_level} >= {"core", "cli"}
    assert len(checked) > 1000
    wrong = [i for i in checked if layer(i.module) > layer(i.importer)]
    assert wrong == []
    # The package itself loads public names when they are requested.
    assert [i for i in all_imports() if not i.importer and i.at_module_level] == []


def is_package(module: str) -> bool:
    return MODULES[module].name == "__init__.py"


def test_imports_have_no_cycles() -> None:
    """Imports in functions and for types count, except those of `__init__`, which publishes."""
    loaded: dict[str, set[str]] = {}
    inner: dict[str, set[str]] = {}
    for i in all_imports():
        module = cgprimer._PUBLIC.get(i.module) or i.module
        if module in MODULES and module != i.importer:
            if i.at_module_level:
                loaded.setdefault(i.importer, set()).add(module)
            if not is_package(i.importer) and not is_package(module):
                inner.setdefault(i.importer, set()).add(module)
    for graph in (loaded, inner):
        graphlib.TopologicalSorter(graph).prepare()  # CycleError names the modules of a cycle


def test_modules_have_different_names_that_tell_their_contents() -> None:
    stems = {name: name.rpartition(".")[2] for name in MODULES if name and not is_package(name)}
    assert [name for name, n in Counter(stems.values()).items() if n > 1] == []
    assert [n for n, s in stems.items() if s in ("utils", "util", "helpers", "misc", *HEAVY)] == []
    for name, stem in stems.items():
        for node, _ in statements(trees()[name]):
            imported = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                imported = [node.module or ""]
            assert stem not in {module.split(".")[0] for module in imported}, name


def modules_that_name(*names: str) -> set[str]:
    """Return the modules whose code, not only a comment or text, contains one of the names."""
    pattern = re.compile(rf"\b({'|'.join(names)})\b")
    return {
        module
        for module, path in MODULES.items()
        if pattern.search(path.read_text(encoding="utf-8"))
        for node in ast.walk(trees()[module])
        if isinstance(node, ast.Name | ast.Attribute)
        and ast.unparse(node).removeprefix("builtins.") in names
    }


def test_the_package_neither_evaluates_nor_executes_text() -> None:
    # numba compiles functions, so kernels for a GPU, written from a verified tape in which values
    # are called v0, v1, ..., are executed in one place. tests/cuda looks at that text.
    executing = modules_that_name("eval", "exec", "__builtins__")
    assert executing == {"backends.cuda.generated_functions"}


def test_only_methods_emit_partials() -> None:
    """Other modules that show derivatives read the contributions of the program."""
    emitting = modules_that_name("emit_partial")
    assert {name for name in emitting if not name.startswith("core.methods.")} == {
        "recording.scalar_sweep",  # reads the partials of the table once for each primitive
        "course.checks.branch_coverage",  # tests partials for 0
    }


INTERNAL_NAME = re.compile(
    r"""(?:\bf|\.(?:startswith|removeprefix|partition|split)\()["']"""
    r"(?:bar|cut|d|decision|dot|edge|hidden|loss|mask|mean|new|partial|path|row|seed|shift|target"
    r"""|variance)\.["'{]"""
)


def test_one_module_builds_and_parses_the_names_of_internal_values() -> None:
    texts = {name: path.read_text("utf-8") for name, path in MODULES.items()}
    assert {name for name, text in texts.items() if INTERNAL_NAME.search(text)} == set()


def test_deprecated_module_names_import_the_renamed_modules() -> None:
    from cgprimer.support.moved_modules import NEW_NAMES

    assert set(NEW_NAMES) & set(MODULES) == set()
    assert [new for new in NEW_NAMES.values() if new not in MODULES] == []
    sys.modules.pop("cgprimer.core.run", None)  # another test may have imported it
    with pytest.warns(DeprecationWarning, match=r"import cgprimer\.core\.evaluation\.runner"):
        old = importlib.import_module("cgprimer.core.run")
    assert old is importlib.import_module("cgprimer.core.evaluation.runner")
    program = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from cgprimer.native.cpu.engine import ENGINE\n"
        "from cgprimer.backends.cpu import cpu_engine\n"
        "import cgprimer.native\n"
        "print(cpu_engine.ENGINE is ENGINE, cgprimer.native.cpu is not None)\n"
    )
    assert in_a_process(program).split() == ["True", "True"]


# --- loaded modules ------------------------------------------------------------------------------


def in_a_process(program: str, *flags: str, folder: Path = PACKAGE.parent) -> str:
    """Return what a program prints; -I ignores the environment and the user's packages."""
    start = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    command = [sys.executable, "-I", *flags, "-c", start + program]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


@cache
def loaded_after(program: str) -> set[str]:
    """Return the modules that are loaded when a program has run."""
    report = "\nimport sys; print('loaded:', *sys.modules)"
    return set(in_a_process(program + report).rpartition("loaded:")[2].split())


COMMAND = """
import sys; from cgprimer.cli import main
sys.argv = ["cgprimer", {0!r}]
sys.stderr = sys.stdout
try: main()
except SystemExit: pass
"""
GRADIENT = """
import cgprimer; graph = cgprimer.parse('xw = k*xa^2 + sin(k)')
print(cgprimer.gradient(graph, {'k': 1.0, 'xa': 2.0}))
"""


@pytest.mark.parametrize(
    ("program", "allowed"),
    [
        ("import cgprimer; cgprimer.__version__; dir(cgprimer)", set()),
        ("import cgprimer; cgprimer.plot.loss", {"numpy"}),
        (COMMAND.format("--help"), {"click"}),
        (COMMAND.format("nosuch"), {"click"}),
        (GRADIENT, {"numpy"}),
    ],
)
def test_programs_load_only_the_libraries_that_they_need(program: str, allowed: set[str]) -> None:
    loaded = loaded_after(program)
    assert "cgprimer" in loaded
    assert loaded & HEAVY - loaded_after("pass") <= allowed  # Python itself loads some


STANDARD_LIBRARY_ONLY = """
import cgprimer, sys
text = "xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+sin(xz)^3"
graph = cgprimer.parse(text + "; input xa = 0.5; parameter ab = 1, bc = 2, cd = 3, ac = 4")
expected = cgprimer.gradient(graph)
assert isinstance(expected["ab"], float)
for method in set(cgprimer.methods()) - {"symbolic"}:
    print(cgprimer.differentiate(cgprimer.tape(graph), method=method))
    for name, slope in cgprimer.gradient(graph, method=method).items():
        assert abs(expected[name] - slope) <= 1e-6 * (1 + abs(slope)), (method, name)
for more in ({"method": "forward", "wrt": "xa"}, {"method": "reverse"}):
    print(cgprimer.trace(graph, **more))
comparison = cgprimer.compare(graph)
assert comparison.result("reverse").derivatives == expected
print(comparison)
try:
    cgprimer.gradient(graph, method="symbolic")
except cgprimer.CgprimerError as error:
    assert "sympy" in str(error), error
else:
    raise AssertionError("sympy is installed")
assert not {"numpy", "sympy", "mpmath"} & set(sys.modules)
"""


def test_core_needs_only_the_standard_library(tmp_path: Path) -> None:
    """-S ignores installed packages, so that only Python and cgprimer can be imported."""
    (tmp_path / "cgprimer").symlink_to(PACKAGE)
    assert "bar_xz" in in_a_process(STANDARD_LIBRARY_ONLY, "-S", folder=tmp_path)


# --- the public names ----------------------------------------------------------------------------


def test_public_names_exist_and_have_docstrings() -> None:
    assert len(cgprimer.__all__) == len(set(cgprimer.__all__))
    assert dir(cgprimer) == sorted(cgprimer.__all__)
    for name in set(cgprimer.__all__) - {"__version__"}:
        value = getattr(cgprimer, name)
        assert (value.__doc__ or "").strip(), name
        module = cgprimer._PUBLIC[name]
        home = importlib.import_module(f"cgprimer.{module or name}")
        own = getattr(home, name) if module else home
        assert inspect.unwrap(value) in (own, inspect.unwrap(own), getattr(own, "__func__", own))
        # Importing cgprimer.training would put the package over a function cgprimer.training.
        assert not (module and name in PACKAGES), name
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = cgprimer.nothing_of_the_kind
