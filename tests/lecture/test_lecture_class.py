"""The class of the lecture: calls in the order of the lecture (cases A1, A2, A3, F6, F15)."""

import os
import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer import CgprimerError
from cgprimer.course.lecture_class import figure_display
from cgprimer.course.lecture_class.layered_networks import sample_batches
from cgprimer.course.lecture_class.vertex_differences import NAME, vertex_differences
from cgprimer.lecture import ComputationalGraphPrimer
from tests.approval import refused

EXPRESSIONS = ["xx=xa^2", "xy=ab*xx+ac*xa", "xz=bc*xx+xy", "xw=cd*xx+xz^3"]
GROUND_TRUTH = {"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}
NEURON = ["xw=ab*xa+bc*xb+cd*xc+ac*xd"]
NETWORK = ["xw=ap*xp+aq*xq+ar*xr+as*xs", "xz=bp*xp+bq*xq+br*xr+bs*xs", "xo=cp*xw+cq*xz"]


@pytest.fixture(autouse=True)
def headless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Write empty image files, because rendering is tested elsewhere."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figure_display, "save_figure", lambda figure, path: path.touch())


def create_primer(**settings: object) -> ComputationalGraphPrimer:
    own = {"expressions": EXPRESSIONS, "output_vars": ["xw"], "dataset_size": 100, "seed": 0}
    cls = settings.pop("cls", ComputationalGraphPrimer)
    return cls(**(own | settings))  # type: ignore[operator, no-any-return]


def train_primer(**settings: object) -> ComputationalGraphPrimer:
    cgp = create_primer(**settings)
    cgp.parse_expressions()
    cgp.gen_gt_dataset(vals_for_learnable_params=GROUND_TRUTH)
    cgp.train_on_all_data()
    return cgp


def create_neuron(**settings: object) -> ComputationalGraphPrimer:
    own = {"expressions": NEURON, "one_neuron_model": True, "learning_rate": 5e-2,
           "training_iterations": 600, "display_loss_how_often": 100}  # fmt: skip
    cgp = create_primer(**(own | settings))
    cgp.parse_expressions()
    return cgp


def create_network(**settings: object) -> ComputationalGraphPrimer:
    own = {"expressions": NETWORK, "output_vars": ["xo"], "num_layers": 3,
           "layers_config": [4, 2, 1], "learning_rate": 0.3, "training_iterations": 1200,
           "display_loss_how_often": 200}  # fmt: skip
    cgp = create_primer(**(own | settings))
    cgp.parse_multi_layer_expressions()
    return cgp


def losses(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"loss = (\S+)", text)]


def test_lecture_workflow(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cgp = train_primer(learning_rate=1e-6, display_vals_how_often=20, grad_delta=1e-4)
    assert cgp.depends_on == {
        "xx": ["xa"], "xy": ["xa", "xx"], "xz": ["xx", "xy"], "xw": ["xx", "xz"]
    }  # fmt: skip
    assert cgp.leads_to["xx"] == ["xy", "xz", "xw"]
    assert len(losses(capsys.readouterr().out)) == 5
    assert cgp.run is not None
    assert cgp.run.loss < cgp.run.start_loss
    cgp.display_network2(tmp_path / "network.png")
    cgp.plot_loss(tmp_path / "loss.svg")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["loss.svg", "network.png"]


def test_vertex_differences_match_the_lecture() -> None:
    made = vertex_differences(cgprimer.parse(EXPRESSIONS), {"xa": 0.5, **GROUND_TRUTH}, 1e-4)
    pairs = made.variable_to_variable | made.variable_to_parameter
    result = {"/".join(pair): value for pair, value in pairs.items()}
    expected = {"xx/xa": 1.0001, "xy/xa": 4, "xy/xx": 1, "xz/xx": 2, "xz/xy": 1, "xw/xx": 3,
                "xw/xz": 22.6875 + 3 * 2.75e-4 + 1e-8,
                "xy/ab": 0.25, "xy/ac": 0.5, "xz/bc": 0.25, "xw/cd": 0.25}  # fmt: skip
    assert result == pytest.approx(expected, rel=1e-9)


def test_grad_delta_sets_the_difference_step() -> None:
    runs = [train_primer(grad_delta=delta).run for delta in (0.5, 1e-5, None)]
    assert all(runs)
    # Compare parameter updates: the parameters stay near their start for any gradient.
    coarse, fine, exact = (
        {name: run.parameters[name] - run.start[name] for name in GROUND_TRUTH} for run in runs
    )
    assert fine == pytest.approx(exact, rel=1e-3)
    assert coarse != pytest.approx(exact, rel=1e-2)
    assert [run.settings["method"] for run in runs] == [NAME, NAME, "reverse"]


def test_each_node_has_bias_and_sigmoid() -> None:
    cgp = create_network()
    numbers = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.35]
    at = dict(zip(cgp.learnable_params, numbers, strict=True))
    at |= {"xp": 0.2, "xq": -0.4, "xr": 0.6, "xs": 0.8}
    at |= {"bias_xw": 0.05, "bias_xz": 0.05, "bias_xo": 0.07}
    assert float(cgp.graph.evaluate(at)["xo"]) == pytest.approx(0.707213228187718, abs=1e-15)
    assert cgp.layer_vars == {0: ["xp", "xq", "xr", "xs"], 1: ["xw", "xz"], 2: ["xo"]}
    assert cgp.learnable_params == "ap aq ar as bp bq br bs cp cq".split()  # noqa: SIM905


@pytest.mark.parametrize("loop", ["one", "multi"])
def test_training_loops_reduce_the_loss(
    loop: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cgp = create_neuron() if loop == "one" else create_network()
    data = cgp.gen_training_data()
    assert [len(data[0]), len(data[1])] == [50, 50]
    run = getattr(cgp, f"run_training_loop_{loop}_neuron_model")(data)
    text = capsys.readouterr().out
    result = losses(text)
    assert len(result) == 6
    assert result[-1] < 0.9 * result[0]
    assert result[0] == pytest.approx(np.mean(run.step_losses[: run.steps // 6]), abs=1e-4)
    assert cgp.bias.keys() == set(cgp.dependent_vars)
    assert (tmp_path / "plot_loss.png").exists()
    assert "written to plot_loss.png" in text


def test_batches_are_balanced_and_scaled_by_their_maximum() -> None:
    cgp = create_neuron()
    data = {0: [np.full(4, 2.0), [1, 1, 1, 1]], 1: [[4.0, 4.0, 4.0, 8.0]]}
    made = sample_batches(data, cgp.graph, 50, 8, seed=1)
    x = np.stack([made.inputs[name] for name in cgp.graph.inputs], axis=1).reshape(50, 8, 4)
    assert (x.max(axis=(1, 2)) == 1.0).all()
    y = made.targets["xw"].reshape(50, 8)
    assert 0.3 < y.mean() < 0.7
    assert ((x[:, :, 3] == 1.0) == (y == 1.0)).all()


def test_layer_settings_are_validated() -> None:
    with refused(CgprimerError, "`layers_config` is [4, 3, 1]") as caught:
        create_network(layers_config=[4, 3, 1])
    assert "xp, xq, xr, xs; xw, xz; xo" in str(caught.value.hint)
    with refused(CgprimerError, "`num_layers` ... 2 ... 3"):
        create_network(num_layers=2, layers_config=None)


def test_training_data_must_have_two_classes() -> None:
    data: object
    for data in ({0: [[1, 2, 3, 4]]}, [1, 2], {0: [[1, 2]], 1: [[1, 2]]}):
        with pytest.raises(CgprimerError, match="class"):
            create_neuron().run_training_loop_one_neuron_model(data)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["one_neuron", "multi_neuron"])
def test_verification_against_torch(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    cgp = create_neuron(for_verification_only=True, training_iterations=300, learning_rate=1e-3)
    run = cgp.run_training_with_torchnn(option, cgp.gen_training_data())
    text = capsys.readouterr().out
    assert run.loss < run.start_loss
    if find_spec("torch"):
        (difference,) = re.findall(r"is at most (\S+)\n", text)
        assert float(difference) < 1e-12
    else:
        assert "torch is not installed" in text


def test_training_with_a_custom_function(capsys: pytest.CaptureFixture[str]) -> None:
    cgp = ComputationalGraphPrimer(learning_rate=1e-5, epochs=2, seed=0)
    own = ComputationalGraphPrimer.AutogradCustomization(cgp=cgp, num_samples_per_class=100)
    with refused(CgprimerError) as caught:
        own.train_with_straight_autograd()
    assert "gen_training_data" in str(caught.value.hint)
    own.gen_training_data()
    for train in own.train_with_straight_autograd, own.train_with_extended_autograd:
        run = train()
        result = losses(capsys.readouterr().out)
        assert len(result) == 2
        assert result[-1] < result[0] / 2
        assert run.loss < run.start_loss
    with pytest.raises(CgprimerError):
        cgprimer.parse("xw = DoSillyWithTensor(xa)")  # registered only during that training


def test_dataset_with_activations_applies_relu() -> None:
    cgp = create_primer(expressions=["xx=ab*xa", "xw=cd*xx-xa"], dataset_size=50)
    cgp.parse_expressions()
    cgp.gen_gt_dataset_with_activations(vals_for_learnable_params={"ab": -1.0, "cd": 2.0})
    x, y = cgp.dataset.inputs["xa"], cgp.dataset.targets["xw"]
    assert y == pytest.approx(np.maximum(2 * np.maximum(-x, 0) - x, 0))


class Momentum(ComputationalGraphPrimer):
    """An update step as students write it, with the attributes of the class."""

    def backprop_and_update_params_one_neuron_model(
        self, data_tuples_in_batch, predictions, y_errors_in_batch, deriv_sigmoids
    ):
        self.calls = getattr(self, "calls", 0) + 1
        self.speed = getattr(self, "speed", dict.fromkeys(self.vals_for_learnable_params, 0.0))
        variable_of = {p: v for v, p in self.var_to_var_param[self.output_vars[0]].items()}
        slopes = np.multiply(y_errors_in_batch, deriv_sigmoids)
        for param in self.vals_for_learnable_params:
            place = self.independent_vars.index(variable_of[param])
            step = np.dot(slopes, [row[place] for row in data_tuples_in_batch]) / len(predictions)
            self.speed[param] = 0.9 * self.speed[param] + self.learning_rate * step
            self.vals_for_learnable_params[param] += self.speed[param]
        self.bias += self.learning_rate * float(np.mean(slopes))


def test_subclass_can_override_the_update_step(capsys: pytest.CaptureFixture[str]) -> None:
    cgp = create_neuron(cls=Momentum, training_iterations=300)
    run = cgp.run_training_loop_one_neuron_model(cgp.gen_training_data())
    assert cgp.calls == run.steps == 300
    result = losses(capsys.readouterr().out)
    assert len(result) == 3
    assert result[-1] < 0.9 * result[0]
    assert isinstance(cgp.bias, float)
    assert cgp.vals_for_learnable_params["ab"] == run.parameters["ab"]


class RecordingNetwork(ComputationalGraphPrimer):
    """Record the first update step."""

    def backprop_and_update_params_multi_neuron_model(self, y_errors):
        before = self._collect_parameters()
        super().backprop_and_update_params_multi_neuron_model(y_errors)
        if not hasattr(self, "first"):
            self.first = before, self._collect_parameters(), self._batch, y_errors


def test_network_updates_follow_the_gradient() -> None:
    cgp = create_network(cls=RecordingNetwork, training_iterations=50)
    cgp.run_training_loop_multi_neuron_model(cgp.gen_training_data())
    before, after, rows, errors = cgp.first
    columns = dict(zip(cgp.graph.inputs, rows.T, strict=True))

    def outputs(parameters: dict[str, float]) -> np.ndarray:
        return cgp.graph.evaluate({**parameters, **columns})["xo"]

    targets = outputs(before) + np.ravel(errors)
    assert {*np.round(targets, 12)} <= {0.0, 1.0}
    for name in before:
        step = 1e-5
        up, down = ({**before, name: before[name] + s} for s in (step, -step))
        ends = [float(np.mean((targets - outputs(moved)) ** 2)) for moved in (up, down)]
        slope = (ends[0] - ends[1]) / (2 * step)
        assert after[name] - before[name] == pytest.approx(-0.3 * slope, rel=1e-5, abs=1e-10)
    assert cgp.layer_params[2] == [["cp", "cq"]]
    assert {*cgp.bias} == {1, 2}


# The original scripts, with only the import changed, are read from the folder created by:
#     pip download ComputationalGraphPrimer==1.1.5 --no-deps --no-binary :all: -d /tmp/cgp
#     tar xzf /tmp/cgp/computationalgraphprimer-1.1.5.tar.gz -C /tmp/cgp
FOLDER = Path(
    os.environ.get("CGPRIMER_LECTURE_EXAMPLES", "/tmp/cgp/ComputationalGraphPrimer-1.1.5/Examples")
)
SCRIPTS = {  # number of printed losses and number of trainings
    "graph_based_dataflow": (10, 1),
    "one_neuron_classifier": (400, 1),
    "multi_neuron_classifier": (200, 1),
    "verify_with_torchnn": (400, 1),
    "extending_autograd": (100, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_lecture_scripts_run_and_learn(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = FOLDER / f"{name}.py"
    if not script.exists():
        pytest.skip(f"no {script}: set CGPRIMER_LECTURE_EXAMPLES")
    before, after = "\nfrom ComputationalGraphPrimer import", "\nfrom cgprimer.lecture import"
    text = script.read_text(encoding="utf-8")
    assert text.count(before) == 1
    if "import torch" in text:
        pytest.importorskip("torch", reason="the script itself imports torch")
    (tmp_path / "script.py").write_text(text.replace(before, after), encoding="utf-8")
    runpy.run_path("script.py", run_name="__main__")
    losses = [float(number) for number in re.findall(r"loss = (\S+)", capsys.readouterr().out)]
    lines, trainings = SCRIPTS[name]
    assert len(losses) == lines
    for own in np.reshape(losses, (trainings, -1)):
        few = max(1, len(own) // 10)
        assert sum(own[-few:]) < 0.8 * sum(own[:few])
