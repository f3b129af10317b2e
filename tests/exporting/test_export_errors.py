"""What cannot be exported is said before any work, with its place; files stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import cgprimer
from cgprimer.errors import SourceError, UsageError
from tests.approval import approved, refused
from tests.cases.case_tools import example
from tests.cli.cli_tools import bad, good


@pytest.fixture
def wobble() -> Iterator[None]:
    """A registered function with a form for sympy, but not for other targets."""
    cgprimer.register_primitive("wobble", lambda a: a * a, partials="2*a", sympy=lambda _, a: a**2)
    yield
    cgprimer.unregister_primitive("wobble")


@pytest.mark.usefixtures("wobble")
def test_registered_function_is_rejected_at_its_position() -> None:
    graph = cgprimer.parse("xb = 2*xa\nxw = k*wobble(xb + 1) + 3", name="wobbly.cg")
    for target in ("c", "numpy"):
        with refused(SourceError, "wobbly.cg:2:8"):
            cgprimer.export(graph, target)
    assert "wobble" in cgprimer.export(graph, "latex")
    assert "**2" in cgprimer.export(graph, "sympy")


@pytest.mark.parametrize(
    ("name", "how", "said"),
    [
        ("lecture", {"to": "pyton"}, "'python'"),
        ("lecture", {"of": "xq"}, "'xq'"),
        ("softmax", {"wrt": "x"}, "of='s[0]'"),
        ("lecture", {"at": {"xa": [1.0, 2.0]}}, "'xa'"),
        ("lecture", {"to": "sympy", "method": "finite-difference"}, ""),
        ("lecture", {"wrt": "xx", "method": "finite-difference"}, "'xx'"),
        ("lecture", {"method": "finite-difference", "scheme": "complex-step"}, ""),
        ("lecture", {"method": "reverse", "carry": True}, "'carry'"),
    ],
    ids=str,
)
def test_wrong_arguments_are_rejected(name: str, how: dict[str, object], said: str) -> None:
    with refused(UsageError, said):
        cgprimer.export(example(name), **how)  # type: ignore[arg-type]


def test_file_is_overwritten_only_with_force(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("mine")
    approved(bad("export", "lecture", "-o", "a.py", cwd=tmp_path), "a.py")
    assert (tmp_path / "a.py").read_text() == "mine"
    good("export", "lecture", "-o", "a.py", "--force", cwd=tmp_path)
    assert (tmp_path / "a.py").read_text() == cgprimer.export(example("lecture"))
    assert good("export", "lecture") == cgprimer.export(example("lecture"))


def test_file_lists_renamed_names(tmp_path: Path) -> None:
    names = ["b", "a", "value", "for", "k", "lambda", "if"]
    graph = cgprimer.parse(f"parameter {', '.join(names)}; w = {' + '.join(names)}")
    said = "value -> value_, for -> for_, lambda -> lambda_, if -> if_\n"
    assert f"Renamed: {said}" in cgprimer.export(graph)


def test_options_of_the_command_reach_the_file() -> None:
    text = good("export", "-e", "xw = k*xa", "--loss", "squared-error", "--wrt", "k,xa",
                "--at", "k=2,xa=3,target=5", "--to", "numpy", "--method", "forward")  # fmt: skip
    assert '"at": {"xa": 3.0, "target": 5.0, "k": 2.0},' in text
    assert "def tangent(xa, target, k, dot_k, dot_xa):" in text
    assert "cobol" in bad("export", "lecture", "--to", "cobol")
    approved(bad("export", "lecture", "--step", "1e-3"), "--method finite-difference")
