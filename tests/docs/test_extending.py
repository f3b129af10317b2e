"""Install the package of docs/internals/extending.md, and use all that it adds in commands."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.cli_tools import environment, write_package
from tests.docs.test_docs import FENCE, ROOT

COMMANDS = {  # command lines, and a part of what they print
    'grad -e "xw = swish(k*xa)" --at k=1,xa=2 --method backprop': "d xw / d k = 2.1815",
    'grad -e "xw = swish(k*xa)" --at k=1,xa=2 --engine loop': "d xw / d k = 2.1815",
    "train lecture --optimizer signs --loss log-cosh --method backprop --engine loop --samples 60"
    " --epochs 2": "method backprop, engine loop, optimizer signs",
    "draw olah -o olah.edges": "wrote olah.edges",
    "info": "loop: available",
}
PROGRAM = """
import shlex, sys
from tests.cli.cli_tools import here
print(*[here(*shlex.split(line), merged=True).stdout for line in sys.argv[1:]], sep="\\0")
"""


@pytest.mark.slow
def test_commands_use_the_extensions_of_an_installed_package(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "internals" / "extending.md").read_text(encoding="utf-8")
    blocks = {kind: body for _, kind, body in FENCE.findall(text)}
    project = tomllib.loads(blocks["toml"])["project"]
    write_package(tmp_path, "my_lecture", blocks["py"], project["entry-points"])
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *COMMANDS], capture_output=True, text=True, check=False,
        cwd=tmp_path, env=environment(PYTHONPATH=f"{tmp_path}:{ROOT}"),
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    for expected, printed in zip(COMMANDS.values(), process.stdout.split("\0"), strict=True):
        assert expected in printed
    edges = sorted((tmp_path / "olah.edges").read_text().splitlines())
    assert edges == ["a -> c", "b -> c", "b -> d", "c -> e", "d -> e"]
