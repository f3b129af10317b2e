"""Semantics of the kernels, in numba's simulator: a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow  # a minute and more: a GPU thread is a Python thread there
def test_the_kernels_do_in_the_simulator_what_numpy_does() -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider",
               "-p", "no:xdist", str(HERE / "simulated")]  # fmt: skip
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        cwd=HERE.parents[1],
        check=False,
    )
    if run.returncode:
        pytest.fail(f"in the simulator:\n{run.stdout[-6000:]}{run.stderr[-2000:]}", pytrace=False)
    assert " passed" in run.stdout
