"""Files of a check for Gradescope, Otter and nbgrader.

The autograder stays with the instructor. The other files, which students receive, contain no
correct values: their cells call cgprimer, which computes them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

from cgprimer.course.checks.batch_checks import Check
from cgprimer.course.checks.package_wheel import build_wheel, zip_files

_SETUP = """\
#!/usr/bin/env bash
# Run once, when Gradescope builds the image: install Python 3.11 or newer, and cgprimer.
root="${AUTOGRADER:-/autograder}"
wheel="$root/source/%(wheel)s"
newer() {
  for python in python3 python3.14 python3.13 python3.12 python3.11; do
    "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
      return 0
  done
  return 1
}
newer || { apt-get update -q; apt-get install -y -q python3.11 python3.11-venv; newer; } || exit 1
"$python" -m venv --system-site-packages "$root/env"
# Without a network, the installed packages must suffice.
"$root/env/bin/python" -m pip install --quiet "$wheel" ||
  "$root/env/bin/python" -m pip install --quiet --no-index --no-deps "$wheel"
"$root/env/bin/python" -m cgprimer --version
"""
_RUN = """\
#!/usr/bin/env bash
# Run once per submission; students see results.json, but not the output printed here.
root="${AUTOGRADER:-/autograder}"
python="$root/env/bin/python"
[ -x "$python" ] || python="${PYTHON:-python3}"
chmod -R go= "$root/source"
cd "$root/source" || exit 1
rm -f "$root/results/results.json"
"$python" -m cgprimer check %(arguments)s --force \\
  --gradescope "$root/results/results.json" "$root/submission"
# If there are no results, the output above tells the instructor why.
[ -s "$root/results/results.json" ] ||
  printf '{"score": 0, "output": "The grader failed: tell your instructor.", "tests": []}' \\
  > "$root/results/results.json"
"""
_OTTER = '''\
"""Test file for Otter; cgprimer computes the correct values when it runs."""

from otter.test_files import test_case

OK_FORMAT = False
name = %r
points = %r


def result(env):
    import cgprimer

    return %s
'''
_CASE = """

@test_case(name=%r, points=%r)
def test_%d(env):
    result(env).require(%r, %r)
"""


def build_autograder(check: str, arguments: Sequence[str], files: Mapping[str, bytes]) -> bytes:
    """Build ``autograder.zip`` for Gradescope from scripts, the cgprimer wheel, and other files.

    The arguments are those of ``cgprimer check``, which refer to the further files by their names.
    Source: Gradescope's "Autograder Specifications".
    """
    name, content = build_wheel()
    line = shlex.join([check, *arguments])
    contents = {
        "setup.sh": (_SETUP % {"wheel": name}).encode(),
        "run_autograder": (_RUN % {"arguments": line}).encode(),
        name: content,
        **files,
    }
    return zip_files(contents, executable=("setup.sh", "run_autograder"))


def format_otter_test(check: Check, level: str) -> str:
    """Format a test file for Otter, in the exception-based format, with one test case per part.

    Source: Otter-Grader's documentation, "Python Format", exception-based.
    """
    call = check.call.replace("NAMES", "env")
    content = _OTTER % (check.name, sum(check.parts.values()), call)
    for number, (part, points) in enumerate(check.parts.items(), 1):
        content += _CASE % (part, points, number, part, level)
    return content


def format_nbgrader_notebook(check: Check, level: str) -> str:
    """Format a notebook for nbgrader with a solution cell, and an autograded cell per part.

    The last number of a test cell is the points that it earns.
    Source: nbgrader's cell metadata, version 3, and ``nbgrader.utils.determine_grade``.
    """
    setup = f"import cgprimer\n\nresult = {check.call.replace('NAMES', 'globals()')}"
    # Without these lines nbgrader would remove the skeleton as the solution.
    skeleton = f"{check.skeleton.strip()}\n\n### BEGIN SOLUTION\n### END SOLUTION"
    cells = [
        _create_code_cell(skeleton, f"{check.name}-solution", solution=True),
        _create_code_cell(setup, f"{check.name}-result"),
    ]
    for number, (part, points) in enumerate(check.parts.items(), 1):
        source = f"result.require({part!r}, {level!r})"
        identity = "".join(c if c.isascii() and c.isalnum() else "-" for c in part)
        cells.append(_create_code_cell(source, f"{check.name}-{number}-{identity}", points=points))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1) + "\n"


def _create_code_cell(
    source: str, identity: str, *, solution: bool = False, points: float | None = None
) -> dict[str, object]:
    """Return a code cell with nbgrader's metadata; a cell with points is graded automatically."""
    metadata: dict[str, object] = {"schema_version": 3, "grade_id": identity, "task": False}
    metadata |= {"solution": solution, "locked": not solution, "grade": points is not None}
    if points is not None:
        metadata["points"] = points
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": identity[:64],
        "metadata": {"nbgrader": metadata},
        "outputs": [],
        "source": source,
    }
