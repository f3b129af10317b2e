"""The playground's Python in Pyodide: agreement with CPython, hostile texts, and sizes.

One process of node answers all requests. ``python -m pytest -m slow tests/playground`` runs them.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.support.files import find_examples
from cgprimer.visualization.playground.playground_archives import (
    build_cgprimer_archive,
    build_sympy_archive,
)
from cgprimer.visualization.playground.playground_session import answer_request
from tests.checking.submissions import read_sections

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parent
GRAPHS = {name: cgprimer.load(name) for name in find_examples()}
SCALAR = {n: g for n, g in GRAPHS.items() if not (cgprimer.tape(g).has_arrays or g.layered)}
TEXTS = {name: graph.source.text for name, graph in SCALAR.items()}
TEXTS |= dict(read_sections(FOLDER / "texts.txt"))
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Node:
    """A process of node that answers requests in Pyodide.

    Attributes:
        start: the milliseconds of each part of the start.
        sizes: the bytes of each archive.
    """

    def __init__(self, pyodide: Path, folder: Path) -> None:
        self.archive, self.sympy = folder / "cgprimer.zip", folder / "sympy.zip"
        self.archive.write_bytes(build_cgprimer_archive())
        self.sympy.write_bytes(build_sympy_archive())
        command = ["node", FOLDER / "answer_requests.mjs", pyodide, self.archive]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.start = json.loads(self.process.stdout.readline())

    def ask(self, *requests: Any) -> list[tuple[Any, float]]:
        """Return the answer to each request, and the milliseconds of CPU time."""
        self.process.stdin.write(json.dumps(requests) + "\n")
        self.process.stdin.flush()
        answers = json.loads(self.process.stdout.readline())
        return [(json.loads(answer), milliseconds) for answer, milliseconds in answers]


@pytest.fixture(scope="module")
def node(pyodide_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    started = Node(pyodide_folder, tmp_path_factory.mktemp("archives"))
    with started.process:  # closes its pipes, so that it ends
        yield started


def list_requests(text: str, *, symbolic: bool) -> list[dict[str, Any]]:
    """Return a request for each view; names without a declared value get one."""
    summary = json.loads(answer_request(json.dumps({"view": "summary", "text": text})))
    at = {name: 0.75 - 0.125 * k for k, name in enumerate(summary["missing"])}
    x = (summary["inputs"] or summary["parameters"])[0]["name"]
    common = {"text": text, "at": at}
    if symbolic:
        return [{"view": "methods", **common, "symbolic": True}]
    return [
        {"view": "summary", "text": text},
        *({"view": view, **common} for view in ("graph", "methods", "trace", "step")),
        *({"view": view, **common, "method": "forward"} for view in ("graph", "trace")),
        {"view": "curve", **common, "x": x, "from": 0.25, "to": 1.5, "samples": 7},
        {"view": "export", **common, "format": "python"},
        {"view": "export", **common, "format": "latex"},
    ]


def compare(actual: Any, expected: Any, tolerance: float, path: tuple[Any, ...] = ()) -> None:
    """Check that two answers are equal, with numbers that agree to a relative tolerance."""
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys(), path
        name = expected.get("method", "")
        loose = 1e-6 if tolerance and name == "finite-difference" else tolerance
        for key, value in expected.items():
            # Layouts have other engines; errors are the last bits of numbers that are compared.
            if key not in ("drawing", "others", *(["error"] if name else [])):
                compare(actual[key], value, loose, (*path, name or key))
    elif isinstance(expected, list):
        assert len(actual) == len(expected), path
        for k, pair in enumerate(zip(actual, expected, strict=True)):
            compare(*pair, tolerance, (*path, k))
    elif isinstance(expected, str):
        assert NUMBER.sub("#", actual) == NUMBER.sub("#", expected), path
        pairs = zip(*(map(float, NUMBER.findall(t)) for t in (actual, expected)), strict=True)
        assert all(abs(a - b) <= tolerance * max(abs(b), 1.0) for a, b in pairs if a != b), path
    elif isinstance(expected, float | int) and not isinstance(expected, bool):
        difference = abs(actual - expected)
        assert actual == expected or difference <= tolerance * max(abs(expected), 1e-3), path
    else:
        assert actual == expected, path


def has_rounded_functions(text: str) -> bool:
    """Return whether a text uses more than + - * /, whose results IEEE 754 determines."""
    tape = cgprimer.tape(cgprimer.parse(text))
    return bool({str(i.primitive) for i in tape.instructions} - {"add", "sub", "mul", "div", "neg"})


def drop_symbolic(answer: dict[str, Any]) -> dict[str, Any]:
    rows = [row for row in answer["methods"] if row["method"] != "symbolic"]
    return {**answer, "methods": rows}


@pytest.mark.parametrize("symbolic", [False, True])
def test_numbers_agree_with_cpython(node: Node, symbolic: bool) -> None:
    assert len(TEXTS) >= 24
    assert sum(not has_rounded_functions(text) for text in TEXTS.values()) >= 5
    if symbolic:  # refused until sympy is unpacked
        (answer, _), *_ = node.ask({"view": "methods", "text": "xw = xa^2", "symbolic": True})
        assert answer["needs"] == "sympy"
        node.ask({"unpack": str(node.sympy)})
    for text in TEXTS.values():
        requests = list_requests(text, symbolic=symbolic)
        tolerance = 1e-12 if has_rounded_functions(text) else 0.0
        for request, (answer, _) in zip(requests, node.ask(*requests), strict=True):
            expected = json.loads(answer_request(json.dumps(request)))
            if request["view"] == "methods" and not symbolic:
                answer, expected = drop_symbolic(answer), drop_symbolic(expected)  # noqa: PLW2901
            compare(answer, expected, tolerance, (text[:40], request["view"]))


def test_symbolic_differentiation_does_not_crash(node: Node) -> None:
    node.ask({"unpack": str(node.sympy)})
    for depth in (50, 51, 400):  # more than 50 nested operations are refused
        text = f"input xa = 1\nxw = {'sin(' * depth}xa{')' * depth}"
        (answer, _), *_ = node.ask({"view": "methods", "text": text, "symbolic": True})
        rows = {row["method"]: row for row in answer["methods"]}
        assert bool(rows["symbolic"]["lines"]) == (depth == 50)
        assert rows["reverse"]["derivatives"]["xa"] > 0


def test_training_agrees_with_cpython(node: Node) -> None:
    def train(ask: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        settings = {"epochs": 5, "batch_size": 8, "seed": 3}
        answer = ask({"view": "train", "text": TEXTS["network"], **settings})
        while not answer["finished"]:
            answer = ask({"view": "train-more", "run": answer["run"], "milliseconds": 50})
        return {**answer, "run": 0}

    here = train(lambda request: json.loads(answer_request(json.dumps(request))))
    compare(train(lambda request: node.ask(request)[0][0]), here, 1e-12)


PIECES = (
    "", "1e308", "1e-320", "9" * 400, "^1e9", "^-99999", "0", "nan", "\t", "\r", "\x00", "\x1b",
    "\u202e", "\u00b2", "\U0001f600", "\ud800", "\ufeff", "input ", "output ", "parameter ", "x[3]",
    "softmax(", "pi", *"+-*/^()[]=,;#@\n",
)  # fmt: skip


def mutate(text: str, source: random.Random) -> str:
    """Return a text with a few random changes of characters, tokens and lines."""
    for _ in range(source.randint(1, 4)):
        tokens = re.findall(r"\w+|\s+|.", text) or [" "]
        k, other = source.randrange(len(tokens)), source.choice(tokens)
        depth, count = source.choice([3, 200, 400, 9000]), source.choice([2, 20, 300, 9000])
        tokens[k] = source.choice(
            [
                source.choice(PIECES),
                other * source.choice([1, 2, 50]) + tokens[k],
                "sin(" * depth + tokens[k] + ")" * (depth - source.randrange(2)),
                "^".join([tokens[k]] * count),
                "".join(tokens[k:]) * source.choice([1, 39]),
            ]
        )
        text = "".join(tokens)[:150_000]
    return text


def test_mutated_texts_are_answered(node: Node) -> None:
    source, slow, errors = random.Random(27), [], 0
    texts = [mutate(source.choice([*TEXTS.values()]), source) for _ in range(500)]
    texts += ["x" * 100_000, "xw = " + "-" * 99_000 + "xa", "(" * 99_000, "xw = xa\n" * 12_000]
    views = ("methods", "step", "trace", "curve", "export")
    for k, text in enumerate(texts):
        more = {"x": "xa", "from": 0, "to": 1, "format": "latex"}
        view = views[k % len(views)]
        keys = {"curve": ("x", "from", "to"), "export": ("format",)}.get(view, ())
        requests = [{"view": v, "text": text} for v in ("summary", "graph")]
        requests.append({"view": view, "text": text, **{key: more[key] for key in keys}})
        for request, (answer, milliseconds) in zip(requests, node.ask(*requests), strict=True):
            message = answer.get("error", {}).get("message", "")
            errors += bool(message)
            assert "internal error" not in message, (request["view"], message, text[:3000])
            if milliseconds > 5_000:
                slow.append((round(milliseconds), request["view"], len(text), text[:300]))
    assert slow == []
    assert 200 < errors < 1400
    (answer, _), *_ = node.ask({"view": "graph", "text": TEXTS["lecture"]})
    assert answer["gradient"] == {"ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375}


def test_times(node: Node) -> None:
    """An edit takes 60 to 100 ms of an idle machine; the bounds allow for busy ones."""
    assert sum(node.start.values()) < 60_000
    edits = []
    for k in range(10):  # graphs of 49 vertices with different edges
        lines = [f"x{i} = a{i}*x{i - 1} + sin(x{max(i - 2, 0)})" for i in range(1, 25)]
        lines[k] += " + x0"
        parameters = ", ".join(f"a{i} = 0.3" for i in range(1, 25))
        text = "\n".join([f"parameter {parameters}", "input x0 = 0.5", *lines])
        answers = node.ask(*({"view": view, "text": text} for view in ("summary", "graph")))
        assert len(answers[1][0]["vertices"]) == 49
        edits.append(sum(milliseconds for _, milliseconds in answers))
    assert sorted(edits)[5] < 500
