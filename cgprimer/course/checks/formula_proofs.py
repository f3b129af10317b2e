"""Prove with sympy that two formulas are equal, in a child process with a time limit.

The time and memory of sympy are not bounded: it computes ``9^9^9^9`` as an integer. The child
process is started at the first proof, and is replaced if a proof takes too long.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, Queue
from threading import Lock, Thread

SECONDS = 5.0  #: time limit of a proof
_START_SECONDS = 60.0  # time limit for loading sympy on a busy machine
_MEMORY = 2 << 30  # memory limit of the child process, in bytes
_READY = "ready"


class Prover:
    """A child process that proves formulas equal with sympy; may be shared by threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._lines: Queue[str] = Queue()

    def prove_equal(
        self, left: str, right: str, names: Sequence[str], seconds: float = SECONDS
    ) -> bool:
        """Return whether sympy proves two formulas equal within the time limit.

        Args:
            left: a formula in the package's language.
            right: the other formula.
            names: the names of real symbols; other names ``pi`` and ``e`` are constants.
            seconds: the time limit.
        """
        with self._lock:
            try:
                if self._process is None:
                    self._start()
                process = self._process
                assert process
                assert process.stdin
                process.stdin.write(json.dumps([left, right, list(names)]) + "\n")
                process.stdin.flush()
                return self._lines.get(timeout=seconds) == "equal"
            except (OSError, ValueError, Empty):  # no child, a child that died, or out of time
                self._stop()
                return False

    def _start(self) -> None:
        """Start the child process and wait until it has loaded sympy."""
        # -P: do not import from the current folder, where a submission may be named sympy.py.
        command = [sys.executable, "-P", "-m", "cgprimer.course.checks.formula_proofs"]
        paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=environment,
        )
        self._process, self._lines = process, Queue()
        Thread(target=_forward_lines, args=(process, self._lines), daemon=True).start()
        if self._lines.get(timeout=_START_SECONDS) != _READY:
            raise OSError("the child process did not start")

    def _stop(self) -> None:
        """End the child process, if it is running, and close its pipes."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    _close_pipe(pipe)

    def close(self) -> None:
        """End the child process after the current proof."""
        with self._lock:
            self._stop()


def _close_pipe(pipe: object) -> None:
    """Close a pipe, ignoring errors."""
    try:
        pipe.close()  # type: ignore[attr-defined]
    except (OSError, ValueError):
        return


def _forward_lines(process: subprocess.Popen[str], lines: Queue[str]) -> None:
    """Copy the output lines of a child process to a queue; append an empty string at the end."""
    assert process.stdout
    try:
        for line in process.stdout:
            lines.put(line.strip())
    except (OSError, ValueError):
        pass
    lines.put("")


PROVER = Prover()
atexit.register(PROVER.close)


# --- the child process ---------------------------------------------------------------------------


def _prove_equal(left: str, right: str, names: Sequence[str]) -> bool:
    """Return whether sympy simplifies the difference of two formulas to 0."""
    import sympy

    from cgprimer.core.operations import symbolic_arithmetic
    from cgprimer.expressions import parse_expression

    constants: Mapping[str, object] = {"pi": sympy.pi, "e": sympy.E}
    first, second = (
        symbolic_arithmetic.build_sympy_expression(parse_expression(text)) for text in (left, right)
    )
    values = {sympy.Symbol(n, real=True): v for n, v in constants.items() if n not in names}
    return bool(sympy.simplify((first - second).subs(values)) == 0)


def _serve_proofs() -> None:
    """Read pairs of formulas from standard input; print whether sympy proves each pair equal."""
    import sympy  # noqa: F401

    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except (ImportError, OSError, ValueError):  # not a Unix system: the time limit remains
        pass
    _print_line(_READY)
    for line in sys.stdin:
        try:
            result = _prove_equal(*json.loads(line))
        except Exception:  # no form in sympy, or nothing that sympy can do
            result = False
        _print_line("equal" if result else "unknown")


def _print_line(line: str) -> None:
    """Print a line to standard output, and flush the stream."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _serve_proofs()
