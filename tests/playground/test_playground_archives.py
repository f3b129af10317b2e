"""The archives of the playground: their contents, and that every view runs from them alone."""

from __future__ import annotations

import io
import itertools
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import cgprimer
from cgprimer.support.files import find_examples
from cgprimer.visualization.playground import playground_requests, playground_training
from cgprimer.visualization.playground.playground_archives import (
    build_cgprimer_archive,
    build_sympy_archive,
    list_licenses,
)
from cgprimer.visualization.playground.playground_session import answer_request
from tests.approval import approved

LECTURE = cgprimer.load("lecture").source.text
REQUESTS = [
    {"view": "summary", "text": LECTURE},
    {"view": "graph", "text": LECTURE, "method": "forward", "wrt": ["cd"]},
    {"view": "graph", "text": "xw = ab*xa"},
    {"view": "methods", "text": "input xa = 2; xw = sin(xa)^2"},
    {"view": "trace", "text": LECTURE, "method": "forward", "wrt": ["xa"]},
    {"view": "step", "text": LECTURE},
    {"view": "curve", "text": LECTURE, "x": "xa", "from": -1, "to": 1, "samples": 5},
    *({"view": "export", "text": LECTURE, "format": f} for f in ("latex", "tikz", "python")),
    {"view": "examples"},
    {"view": "train", "text": LECTURE, "epochs": 2, "samples": 30, "batch_size": 4},
    {"view": "train", "text": LECTURE, "data": "xa,xw\n1,2\n", "epochs": 3},
    {"view": "train", "text": "xw = log(k*xa)", "data": "xa,xw\n1,2\n-1,2"},
    *({"view": "train-more", "run": k, "milliseconds": 2000} for k in (1, 2, 3, 3)),
    {"view": "train-stop", "run": 1},
]
SLOW = ("mlp", "network")  # examples whose derivatives take a second with many digits


def ask(view: str, text: str, **arguments: object) -> dict:
    """Return the answer to a request."""
    return json.loads(answer_request(json.dumps({"view": view, "text": text, **arguments})))


def test_archives_hold_what_the_page_needs_and_no_tests() -> None:
    archives = [build_cgprimer_archive(), build_sympy_archive()]
    assert archives[0] == build_cgprimer_archive()
    entries = [e for archive in archives for e in zipfile.ZipFile(io.BytesIO(archive)).infolist()]
    assert {entry.date_time[0] for entry in entries} == {1980}
    assert len(archives[0]) < 1.2e6
    names = [zipfile.ZipFile(io.BytesIO(archive)).namelist() for archive in archives]
    for name in (*names[0], *names[1]):
        assert not set(Path(name).parts) & {"tests", "benchmarks", "__pycache__"}, name
        assert not name.endswith((".so", ".pyc", ".pyd")), name
    modules = {name.split("/")[0] for listed in names for name in listed if name.endswith(".py")}
    assert modules == {"cgprimer", "jinja2", "markupsafe", "sympy", "mpmath"}
    for license in list_licenses():
        assert len(license.text) > 1000
        assert "licen" in license.text.lower() or "Redistribution" in license.text
        listed = names[license.package in ("sympy", "mpmath")]
        where = "cgprimer" if license.package == "cgprimer" else f"{license.package}-"
        assert any(n.startswith(where) and "LICENSE" in n for n in listed), license.package


@pytest.fixture(scope="module")
def isolated_answers(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """Answer requests with the archive as the only package that Python can import."""
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(io.BytesIO(build_cgprimer_archive())).extractall(folder)
    program = (
        f"import sys, json; sys.path.insert(0, {str(folder)!r})\n"
        "from cgprimer.visualization.playground.playground_session import answer_request\n"
        "answers = [json.loads(answer_request(json.dumps(r))) for r in json.load(sys.stdin)]\n"
        "print(json.dumps(answers))"
    )
    command = [sys.executable, "-I", "-S", "-W", "ignore", "-c", program]
    done = subprocess.run(
        command, input=json.dumps(REQUESTS), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def simplify_answer(request: dict, answer: dict) -> object:
    """Leave out what depends on the layout engine and on the installed libraries."""
    if request["view"] == "methods":
        rows = [row for row in answer["methods"] if row["method"] != "symbolic"]
        return [(row["method"], row["derivatives"], row["lines"]) for row in rows]
    answer = {name: value for name, value in answer.items() if name != "drawing"}
    return "" if request.get("format") == "tikz" else answer


def test_every_view_runs_from_the_archive_alone(
    isolated_answers: list[dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playground_training, "_NUMBERS", itertools.count(1))
    for request, isolated in zip(REQUESTS, isolated_answers, strict=True):
        expected = json.loads(answer_request(json.dumps(request)))
        assert simplify_answer(request, isolated) == simplify_answer(request, expected), request
    symbolic = next(r for r in isolated_answers[3]["methods"] if r["method"] == "symbolic")
    assert (symbolic["needs"], symbolic["lines"]) == ("sympy", [])
    exported, first, second, failed, forgotten = (isolated_answers[k] for k in (8, 14, 15, 16, 17))
    assert exported["text"].startswith("% made by cgprimer")
    assert [len(answer["losses"]) for answer in (first, second)] == [2, 3]
    assert "log(k*xa)" in failed["error"]["message"]
    assert "unknown run" in forgotten["error"]["message"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in sorted(find_examples())],
)
def test_every_example_has_every_view(name: str) -> None:
    text = cgprimer.load(name).source.text
    formats = ({"format": kind} for kind in ("latex", "tikz", "python"))
    views = [{"view": v} for v in ("summary", "graph", "methods", "trace", "step")]
    for request in (*views, *({"view": "export", **kind} for kind in formats)):
        answer = json.loads(answer_request(json.dumps({**request, "text": text})))
        assert "error" not in answer, (request, answer["error"])
        if request["view"] == "graph":
            graph, target = cgprimer.load(name), answer["target"]
            if target in graph.variables and not cgprimer.tape(graph).has_arrays:
                assert answer["gradient"] == cgprimer.gradient(graph, of=target)


def test_requests_without_values_and_with_arrays(isolated_answers: list[dict]) -> None:
    assert (isolated_answers[2]["missing"], isolated_answers[2]["values"]) == (["xa", "ab"], None)
    elements = ask("graph", "input x[2] = [3, 4]; xs = x^2")
    assert (elements["target"], elements["gradient"]["x"]["text"]) == ("xs_0", "[6, 0]")
    assert ask("summary", "input x[2] = [1, 2]; xw = sum(x)")["has_arrays"] is True


def test_numbers_of_edges_and_methods() -> None:
    text = "input xa = 3; parameter k = 2; xb = k*xa; xw = xb^2"
    for seed, products in ((None, (36, 24, 12)), ("xa", (0, 2, 24))):
        method, wrt = ("forward", [seed]) if seed else ("reverse", ["k", "xa"])
        answer = ask("graph", text, method=method, wrt=wrt)
        columns = zip(answer["edges"], answer["partials"], answer["products"], strict=True)
        edges = (["k", "xb"], ["xa", "xb"], ["xb", "xw"])
        assert sorted(columns) == [*zip(edges, (3, 2, 12), products, strict=True)]
        assert answer["seed"] == seed
    rows = ask("methods", "input xa = 1; xw = exp(xa)")["methods"]
    errors = {row["method"]: row["error"] for row in rows}
    assert errors["reverse"] < 1e-15 < errors["finite-difference"] < 1e-6
    rows = ask("methods", f"input xa = 1; xw = {'sin(' * 51}xa{')' * 51}")["methods"]
    assert [row["method"] for row in rows if "51 nested operations" in row["refusal"]] == [
        "symbolic"
    ]
    assert ask("summary", "xb = xa; xc = 2*xa")["notes"] == [
        "These names have no value: xa.", "The graph has several outputs: xb, xc.",
    ]  # fmt: skip


def test_only_the_latest_runs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground_training, "_RUNS", {})
    text = "parameter k = 1; xw = k*xa"
    runs = [ask("train", text, samples=2)["run"] for _ in range(5)]
    requests = (json.dumps({"view": "train-more", "run": run}) for run in runs)
    assert ["unknown run" in answer_request(request) for request in requests] == [True] + [
        False
    ] * 4


BAD_REQUESTS = [
    *Path(__file__).with_name("bad_requests.txt").read_text("utf-8").splitlines(),
    json.dumps({"view": "summary", "text": "xw = 1\n xv = 2*\U0001f600"}),
    json.dumps({"view": "summary", "text": "\ud800 = 1"}),
    json.dumps({"view": "summary", "text": "x" * (playground_requests.MAX_CHARACTERS + 1)}),
    json.dumps({"view": "trace", "text": "xa = 1;" * 9 + "xw=xa+xa+xa;" * 9}),
    json.dumps({"view": "trace", "text": "xw = " + "+".join(["xa*k"] * 3000)}),
    json.dumps({"view": "trace", "text": "; ".join(f"x{k} = xa+{k}" for k in range(3000))}),
    json.dumps({"view": "methods", "text": "xw = " + "+".join(f"p{k}*xa" for k in range(300))}),
    json.dumps({"view": "summary", "text": "parameter W[9000,9000] = glorot; xw = sum(W)"}),
    json.dumps({"view": "methods", "text": "input A[60,60]; xw = sum(k*A @ A)"}),
    '{"view": ' + "[" * 100_000,
]  # fmt: skip


def test_messages_about_bad_requests() -> None:
    answers = [answer_request(request) for request in BAD_REQUESTS]
    approved("\n".join(f"{r:.75}\n  {a:.500}" for r, a in zip(BAD_REQUESTS, answers, strict=True)))
    assert not [a for a in answers if "internal error" in a]
