"""Commands as whole processes: starting Python, importing packages, and the work itself."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial

from ..harness import Cell, Contestant, Settings, measure, one_row_each
from ..report import COMMAND, PROGRAMS, ROOT, Table, milliseconds

TABLES = (Table(("command",), {"time": milliseconds}),)
# The text of a row, and the arguments that it leaves out.
COMMANDS = (PROGRAMS / "commands.txt").read_text().splitlines()


def measure_cells(settings: Settings) -> Iterator[Cell]:
    commands = {
        f'python -c "import {name}"': [sys.executable, "-c", f"import {name}"]
        for name in ("click", "numpy")
    }
    for text, arguments in (line.split(" |") for line in COMMANDS):
        paths = [word.replace("examples/", f"{ROOT}/examples/") for word in arguments.split()]
        commands[text] = [COMMAND, *text.split()[1:], *paths]
    if settings.quick:
        commands = {name: commands[name] for name in ("cgprimer --help", "cgprimer grad")}
    with tempfile.TemporaryDirectory() as folder:
        run = partial(subprocess.run, check=True, capture_output=True, cwd=folder)
        makers = {
            f"`{text}`": partial(Contestant, partial(run, command))
            for text, command in commands.items()
        }
        yield from one_row_each(measure(makers, 2 * settings.budget))
