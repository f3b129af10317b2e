"""A derivative program as text: its tape as code, and its passes or paths."""

from __future__ import annotations

from cgprimer.core.methods.contract import DerivativeProgram
from cgprimer.core.tape.printing import code
from cgprimer.errors import plural


def program_text(program: DerivativeProgram) -> str:
    """What ``print`` shows of a program."""
    lines = [code(program.executed, primal=program.primal_names)]
    if program.paths is not None:
        walks = {path for paths in program.paths.values() for path in paths}
        lines.append(f"# {plural(len(walks), 'path', 'paths')}:")
        by_length = sorted(walks, key=lambda path: (path[0], len(path), path))
        return "\n".join([*lines, *(f"#   {' -> '.join(path)}" for path in by_length)])
    lines.append(f"# {plural(len(program.passes), 'pass', 'passes')}")
    if len(program.passes) > 1:
        texts = enumerate(map(str, program.passes), start=1)
        lines += [f"#   {number}: {text}" for number, text in texts if text]
    return "\n".join(lines)
