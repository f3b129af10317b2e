"""The five scripts of the original's source distribution, with only the import changed.

They are read from a folder named by CGPRIMER_LECTURE_EXAMPLES, or from where this puts them:

    pip download ComputationalGraphPrimer==1.1.5 --no-deps --no-binary :all: -d /tmp/cgp
    tar xzf /tmp/cgp/computationalgraphprimer-1.1.5.tar.gz -C /tmp/cgp
"""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(
    os.environ.get("CGPRIMER_LECTURE_EXAMPLES", "/tmp/cgp/ComputationalGraphPrimer-1.1.5/Examples")
)
SCRIPTS = {  # how many lines with a loss each of them prints, and how many trainings
    "graph_based_dataflow": (10, 1),
    "one_neuron_classifier": (400, 1),
    "multi_neuron_classifier": (200, 1),
    "verify_with_torchnn": (400, 1),
    "extending_autograd": (100, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_the_lecture_runs_and_learns(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    monkeypatch.chdir(tmp_path)
    runpy.run_path("script.py", run_name="__main__")
    losses = [float(number) for number in re.findall(r"loss = (\S+)", capsys.readouterr().out)]
    lines, trainings = SCRIPTS[name]
    assert len(losses) == lines
    for own in np.reshape(losses, (trainings, -1)):
        few = max(1, len(own) // 10)
        assert sum(own[-few:]) < 0.8 * sum(own[:few])
