"""The lecture's own class: its calls in the lecture's order (case A2)."""

from pathlib import Path

import pytest

from cgprimer import CgprimerError, ComputationalGraphPrimer

EXPRESSIONS = ["xx=xa^2", "xy=ab*xx+ac*xa", "xz=bc*xx+xy", "xw=cd*xx+xz^3"]
TRUTH = {"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}


def primer(**settings: object) -> ComputationalGraphPrimer:
    arguments = {"expressions": EXPRESSIONS, "output_vars": ["xw"], "dataset_size": 500}
    return ComputationalGraphPrimer(**(arguments | settings))  # type: ignore[arg-type]


def trained(**settings: object) -> ComputationalGraphPrimer:
    cgp = primer(**settings)
    cgp.parse_expressions()
    cgp.gen_gt_dataset(vals_for_learnable_params=TRUTH)
    cgp.train_on_all_data()
    return cgp


def test_the_calls_of_the_lecture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cgp = trained(learning_rate=1e-6, display_vals_how_often=100, grad_delta=1e-4)
    assert cgp.depends_on == {
        "xx": ["xa"], "xy": ["xa", "xx"], "xz": ["xx", "xy"], "xw": ["xx", "xz"]
    }  # fmt: skip
    assert cgp.leads_to["xx"] == ["xy", "xz", "xw"]
    assert len(capsys.readouterr().out.splitlines()) == 5
    assert cgp.run is not None
    assert cgp.run.loss < cgp.run.start_loss
    cgp.display_network2(tmp_path / "network.png")
    cgp.plot_loss(tmp_path / "loss.svg")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["loss.svg", "network.png"]


def test_negative_inputs_have_the_right_ground_truth() -> None:
    cgp = primer()
    cgp.parse_expressions()
    cgp.gen_gt_dataset(vals_for_learnable_params=TRUTH)
    xa, xw = cgp.dataset.inputs["xa"], cgp.dataset.targets["xw"]
    assert (xa < 0).any()
    expected = 3 * xa**2 + (2 * xa**2 + (xa**2 + 4 * xa)) ** 3
    assert abs(xw - expected).max() < 1e-12 * abs(expected).max()


def test_the_step_of_the_differences_is_used() -> None:
    runs = [trained(grad_delta=delta).run for delta in (0.5, 1e-4, None)]
    assert all(runs)
    # How far the parameters went: they themselves are near their start, whatever the gradient.
    coarse, fine, exact = (
        {name: run.parameters[name] - run.start[name] for name in TRUTH} for run in runs
    )
    assert fine == pytest.approx(exact, rel=1e-5)
    assert coarse != pytest.approx(exact, rel=1e-3)
    assert [run.settings["method"] for run in runs] == [
        "finite-difference", "finite-difference", "reverse"
    ]  # fmt: skip


CALLS = {
    "depends_on": lambda cgp: cgp.depends_on,
    "gen_gt_dataset": lambda cgp: cgp.gen_gt_dataset(TRUTH),
    "train_on_all_data": lambda cgp: cgp.train_on_all_data(),
    "plot_loss": lambda cgp: cgp.plot_loss(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_out_of_order_says_what_to_call_first(call: str) -> None:
    with pytest.raises(CgprimerError, match="first"):
        CALLS[call](primer())
