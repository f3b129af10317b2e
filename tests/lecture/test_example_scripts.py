"""The five scripts of the original's source distribution, with only the import changed.

They are read from a folder named by CGPRIMER_LECTURE_EXAMPLES, or from where this puts them:

    pip download ComputationalGraphPrimer==1.1.5 --no-deps --no-binary :all: -d /tmp/cgp
    tar xzf /tmp/cgp/computationalgraphprimer-1.1.5.tar.gz -C /tmp/cgp
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import cgprimer

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
def test_a_script_of_the_lecture_runs_and_learns(name: str, tmp_path: Path) -> None:
    script = FOLDER / f"{name}.py"
    if not script.exists():
        pytest.skip(f"no {script}: set CGPRIMER_LECTURE_EXAMPLES")
    text, changed = re.subn(
        r"^from ComputationalGraphPrimer import", "from cgprimer.lecture import",
        script.read_text(encoding="utf-8"), flags=re.MULTILINE,
    )  # fmt: skip
    assert changed == 1
    if "import torch" in text and not find_spec("torch"):
        pytest.skip("the script itself imports torch, which is not installed")
    (tmp_path / "script.py").write_text(text, encoding="utf-8")
    paths = [str(Path(cgprimer.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    made = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,  # under 3 seconds of one core, and other tests run beside it
    )
    assert made.returncode == 0, made.stderr
    losses = [float(number) for number in re.findall(r"loss = (\S+)", made.stdout)]
    lines, trainings = SCRIPTS[name]
    assert len(losses) == lines
    for part in range(trainings):
        own = losses[part * lines // trainings : (part + 1) * lines // trainings]
        few = max(1, len(own) // 10)
        assert sum(own[-few:]) < 0.8 * sum(own[:few])
