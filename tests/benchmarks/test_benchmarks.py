"""The benchmark suite works and catches who is wrong. No times are asserted."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import cgprimer

from .__main__ import NAMES, main
from .measuring import Entry, Result, contest, difference
from .peers import by_hand
from .peers.contract import Peer
from .random_graphs import KINDS, random_expressions
from .sections import GPU_SECTIONS, SECTIONS, gpu, recorded
from .sections.gpu import no_gpu
from .sections.gradients import measure, reference
from .settings import Settings
from .workloads import Workload, make_workload, network

QUICK = Settings(quick=True, budget=0.0, peers=("numpy by hand",))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
def test_a_quick_run_gives_markdown_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, data = tmp_path / "table.md", tmp_path / "data.json"
    sections = ["gradients", "batch", "epoch", "minibatch", "methods", "reverse", "parse", "chain"]
    options = ["--quick", "--budget", "0", "--peer", "numpy by hand", "--workload", "W1"]
    code = main([*sections, *options, "--markdown", str(table), "--json", str(data)])
    assert code == 0
    printed = capsys.readouterr().out
    assert printed.strip() == table.read_text().strip()
    assert all(f"## {section}\n" in printed for section in sections)
    found = json.loads(data.read_text())
    assert found["machine"]["versions"]["numpy"] == np.__version__
    by_name = {(row["section"], row["who"]): row for row in found["rows"]}
    assert by_name["gradients", "cgprimer numpy"]["seconds"] > 0
    assert by_name["gradients", "numpy by hand, tuned"]["ratio"] > 0
    assert "WRONG" not in printed
    assert "FAILED" not in printed


@pytest.mark.slow
def test_a_fresh_process_is_measured() -> None:
    rows = SECTIONS["first"](Settings(quick=True, workloads=("r100",)))
    assert {row.who for row in rows} == {"warm cache", "cold cache"}
    assert all(row.seconds is not None for row in rows), rows


@pytest.mark.slow
def test_recorded_python_is_measured_and_checked() -> None:
    rows = SECTIONS["recorded"](Settings(quick=True, budget=0.0))
    ours = [row for row in rows if row.who in ("cgprimer", "computes again")]
    assert len(ours) == 3
    assert all(row.seconds is not None for row in ours), rows
    assert not [row for row in rows if "WRONG" in row.note]


def test_networks_of_matrices_are_measured_and_checked() -> None:
    rows = SECTIONS["matrices"](Settings(quick=True, budget=0.0))
    ours = [row for row in rows if row.who.startswith("cgprimer")]
    assert len(ours) == 3
    assert all(row.seconds is not None for row in ours), rows
    assert not [row for row in rows if "WRONG" in row.note]


@pytest.mark.slow
def test_homework_is_measured() -> None:
    rows = SECTIONS["homework"](Settings(quick=True))
    assert len(rows) >= 5
    assert not [row for row in rows if row.note]
    assert all(row.seconds for row in rows)


def test_the_layer_by_hand_is_the_layer() -> None:
    random = np.random.default_rng(0)
    found = []
    for layer in (recorded.hamilton, recorded.Layer.apply):
        parts, q = (cgprimer.Value(random.normal(size=s)) for s in ((4, 3, 2), (8, 5)))
        (layer(parts, q) ** 2).sum().backward()
        found += [parts.grad, q.grad]
        random = np.random.default_rng(0)
    np.testing.assert_allclose(found[0], found[2], rtol=1e-12)
    np.testing.assert_allclose(found[1], found[3], rtol=1e-12)


def off_by(amount: float, place: int, work: Workload, settings: Settings) -> Entry:
    """A peer that is right but for one component of the gradient."""
    loss, gradient = reference(work)
    wrong = gradient.copy()
    wrong[place] += amount * abs(gradient[place])
    return Entry(lambda: (loss, wrong), lambda found: found)


def raises(work: Workload, settings: Settings) -> Entry:
    raise ValueError("no such luck")


def test_a_wrong_peer_gets_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    work = make_workload("M1", samples=20)
    smallest = int(np.argmin(np.abs(reference(work)[1])))
    planted = [
        Peer("right", partial(off_by, 0.0, 0)),
        Peer("a little off", partial(off_by, 1e-7, smallest)),
        Peer("not a number", partial(off_by, float("nan"), 3)),
        Peer("raises", raises),
        Peer("elsewhere", raises, modules=("no_such_module_anywhere",)),
    ]
    monkeypatch.setattr(by_hand, "peers", lambda settings: planted)
    settings = Settings(quick=True, budget=0.0, peers=tuple(peer.name for peer in planted))
    rows = {row.who: row for row in measure(work, settings)}
    assert rows["right"].seconds is not None
    for name in ("a little off", "not a number"):
        assert rows[name].note.startswith("WRONG"), name
        assert rows[name].seconds is rows[name].first is rows[name].ratio is None
    assert rows["raises"].note == "skipped: ValueError: no such luck"
    assert rows["elsewhere"].note == "not installed"


def test_a_wrong_peer_shows_in_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = [Peer("wrong", partial(off_by, 1e-3, 0))]
    monkeypatch.setattr(by_hand, "peers", lambda settings: planted)
    assert main(["gradients", "--quick", "--workload", "r100", "--peer", "wrong"]) == 1


def test_a_section_that_fails_loses_only_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(settings: Settings) -> list[object]:
        raise RuntimeError("broken")

    monkeypatch.setitem(SECTIONS, "batch", broken)
    assert main(["batch", "chain", "--quick"]) == 1
    printed = capsys.readouterr().out
    assert "FAILED: RuntimeError: broken" in printed
    assert "chain of 1,000 expressions" in printed


def test_a_part_of_the_samples_is_scaled_up() -> None:
    (row,) = contest(
        "s", "w", {"part": lambda: Entry(lambda: None, scale=1e6, part=1)}, None, budget=0.0
    )
    assert row.seconds is not None
    assert row.seconds > 0.01


def test_differences_are_relative_to_what_matters() -> None:
    right: Result = 2.0, np.array([1.0, 1e-9])
    assert difference((2.0, [1.0, 1e-9]), right, "float64") == 0
    assert difference((2.0, [1.0, 1.01e-9]), right, "float64") < 1e-7  # cancelled: of the largest
    assert difference((2.2, [1.0, 1e-9]), right, "float64") == pytest.approx(0.1)
    assert difference((2.0, [1.0]), right, "float64") == float("inf")
    assert difference((float("nan"), [1.0, 1e-9]), right, "float64") == float("inf")


def test_random_graphs_are_what_they_say() -> None:
    for operations in (100, 1000, 5000):
        lines, inputs, parameters = random_expressions(operations)
        graph = cgprimer.parse("\n".join(lines))
        tape = cgprimer.tape(graph)
        assert len(tape) == operations
        assert len(graph.outputs) == 1
        assert set(graph.inputs) == set(inputs)
        assert set(graph.parameters) == set(parameters)
        assert len(parameters) == max(4, operations // 20)
        count = dict.fromkeys(("add", "mul", "div", "pow", "sin", "exp", "tanh"), 0)
        for instruction in tape.instructions:
            count[instruction.primitive] += 1
        fair = operations / len(KINDS)
        assert all(fair / 2 < n < 2 * fair for n in count.values()), count
        assert random_expressions(operations)[0] == lines


def test_matrices_and_expressions_are_the_same_network() -> None:
    work = network("small", (3, 5, 2, 1), 7)
    rows = work.vector(work.matrices(work.start))
    np.testing.assert_array_equal(rows, work.start)
    output = work.function(np, list(work.columns.values()), work.start.tolist())
    hidden = work.points("float64")
    for layer, (weights, bias) in enumerate(work.matrices(work.start)):
        hidden = (np.tanh(hidden) if layer else hidden) @ weights.T + bias
    np.testing.assert_allclose(output, hidden[:, 0], rtol=1e-13)


@pytest.mark.skipif(not no_gpu(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--engine", "cuda"]) == 0
    assert capsys.readouterr().out.startswith("Nothing was measured on a GPU: ")


def test_the_bandwidth_section_with_stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """What of it can be run without a GPU: numpy stands for the engine and for the copy."""
    source = np.zeros(1000)
    monkeypatch.setattr(gpu, "engines", lambda settings: ["numpy"])
    monkeypatch.setattr(gpu, "_copier", lambda size: (source.copy, "numpy"))
    copy, ours = gpu.bandwidth(Settings(quick=True, budget=0.0, samples=(1000,)))
    assert copy.ratio == 1
    assert ours.note == "16 bytes read per sample"
    assert ours.seconds is not None
    assert ours.extra["GB/s"] == pytest.approx(16 * 1000 / ours.seconds / 1e9)


def test_the_help_names_every_section() -> None:
    assert set(NAMES) == {*SECTIONS, *GPU_SECTIONS}
