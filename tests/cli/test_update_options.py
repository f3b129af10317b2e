"""Optimizers, own rules, schedules, regularizers and bounds on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.approval import approved
from tests.cli.cli_tools import bad, good

SMALL = ("--samples", "60", "--epochs", "2", "--learning-rate", "1e-6")
ALL = (
    "--optimizer", "v = mu*v + g; p = p - rate*v", "--hyper", "mu=0.5,gamma=0.8",
    "--schedule", "exponential", "--warm-up", "0.5", "--l1", "ab=0.1", "--l2", "0.01",
    "--bounds", "ab=0:1,cd=-1:inf", "--freeze", "ac", "--max-norm", "ab+bc=2", "--norm", "1",
    "--scale", "bc=0.5",
)  # fmt: skip


def test_a_run_with_everything_is_the_same_from_its_directory(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    found = good("train", "lecture", *SMALL, *ALL, "--directory", str(kept))
    assert "regularizers add" in found
    again = good("train", str(kept / "run.toml"), "--save", str(tmp_path / "again.json"))
    assert again.splitlines()[0] == found.splitlines()[0]
    runs = [json.loads(p.read_text()) for p in (kept / "run.json", tmp_path / "again.json")]
    for key in ("parameters", "step_losses", "penalty"):
        assert runs[0][key] == runs[1][key]
    assert runs[0]["parameters"]["ac"] == 4.0
    more = good("train", "lecture", "--resume", str(tmp_path / "again.json"), "--epochs", "4")
    assert "4 epochs" in more


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--optimizer", "p = p - rate*g/0"), ""),
        (("--optimizer", "v = g"), "p"),
        (("--optimizer", "momentun"), "momentum"),
        (("--optimizer", "momentum", "--hyper", "bta=1"), "'beta'"),
        (("--schedule", "cosin"), "'cosine'"),
        (("--schedule", "rate*(0.5 - t)"), "-"),
        (("--l2", "abc"), ""),
        (("--l1", "ax=1"), "'ax'"),
        (("--bounds", "ab=1"), "LOW:HIGH"),
        (("--bounds", "ab=2:1"), "ascend"),
        (("--freeze", "ab,bq"), "'bq'"),
        (("--max-norm", "2", "--norm", "0.5"), "norm ... 1"),
        (("--optimizer", "l-bfgs", "--l1", "1"), "l-bfgs ... l1"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], said: str) -> None:
    approved(bad("train", "lecture", *SMALL, *arguments), said)
