"""Derivative programs of large tapes are kept on disk: a second process need not derive them again.

A program is plain data, so it is kept as plain data: a line of JSON and arrays of integers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from cgprimer.cache import key_of, load, package_state, store
from cgprimer.core.methods import differentiate
from cgprimer.core.methods.contract import DerivativeProgram, Pass, Read
from cgprimer.core.tape.tape import Instruction, Leaf, Tape
from cgprimer.garbage_collection import collector_paused
from cgprimer.native.fingerprint import fingerprint, shareable

WORTH_KEEPING = 500  # instructions; smaller tapes are differentiated faster than a file is found
_new = tuple.__new__  # a third of the time of Instruction(...)


def kept_program(
    tape: Tape,
    *,
    of: str,
    wrt: tuple[str, ...],
    method: str,
    prepare: Callable[[], Tape] | None = None,
    about: str = "",
    keep: bool = True,
    **options: Any,
) -> DerivativeProgram:
    """A program from the cache, or made by :func:`cgprimer.differentiate` and kept.

    Args:
        tape: what is differentiated, and looked up by.
        of, wrt, method, options: as for :func:`cgprimer.differentiate`.
        prepare: makes the tape that is differentiated instead, of ``tape`` and ``about`` alone;
            called only if the program is not known.
        about: what ``prepare`` does.
        keep: whether the cache may be used: not if ``prepare`` adds primitives from outside.
    """

    def made() -> DerivativeProgram:
        whole = tape if prepare is None else prepare()
        return differentiate(whole, of=of, wrt=wrt, method=method, **options)

    if not keep or len(tape) < WORTH_KEEPING or not shareable(tape):
        return made()
    asked = json.dumps([about, of, wrt, method, sorted(options.items())], default=repr)
    names = json.dumps(list(tape.names.items()))
    key = key_of(package_state(), fingerprint(tape), names, asked)
    known = load("program", key)
    if known is not None:
        return from_bytes(known)
    program = made()
    if program.seeds_only and shareable(
        program.tape
    ):  # partials may bring in primitives that the tape had not
        store("program", key, to_bytes(program))
    return program


@collector_paused()
def to_bytes(program: DerivativeProgram) -> bytes:
    """A program as bytes.

    >>> import cgprimer
    >>> program = cgprimer.differentiate(cgprimer.tape(cgprimer.parse("xw = k*xa^2")))
    >>> str(from_bytes(to_bytes(program))) == str(program)
    True
    """
    tape = program.executed
    names, operands = zip(*tape.instructions, strict=True) if tape.instructions else ((), ())
    used = sorted(set(names))
    number = {name: i for i, name in enumerate(used)}
    head = {
        "method": program.method,
        "of": program.of,
        "wrt": program.wrt,
        "passes": [
            [[list(r) for r in map(_read_fields, run.reads)], run.seeds]
            for run in program.passes
        ],
        "paths": None
        if program.paths is None
        else [[list(pair), paths] for pair, paths in program.paths.items()],
        "primal_names": sorted(program.primal_names),
        "leaves": [[leaf.kind, leaf.name, leaf.value.hex()] for leaf in tape.leaves],
        "outputs": list(tape.outputs.items()),
        "names": list(tape.names.items()),
        "primitives": used,
        "count": len(names),
    }  # fmt: skip
    arrays = (
        np.array([number[name] for name in names], np.int16),
        np.array([len(o) for o in operands], np.int8),
        np.array(list(chain.from_iterable(operands)), np.int32),
    )
    return json.dumps(head).encode() + b"\n" + b"".join(a.tobytes() for a in arrays)


@collector_paused()
def from_bytes(data: bytes) -> DerivativeProgram:
    """The reverse of :func:`to_bytes`."""
    line, _, rest = data.partition(b"\n")
    head = json.loads(line)
    count = head["count"]
    codes = np.frombuffer(rest, np.int16, count)
    lengths = np.frombuffer(rest, np.int8, count, offset=2 * count)
    flat = np.frombuffer(rest, np.int32, offset=3 * count).tolist()
    used = head["primitives"]
    ends = np.cumsum(lengths, dtype=np.int64)
    begins = (ends - lengths).tolist()
    instructions = [
        _new(Instruction, (used[code], tuple(flat[begin:end])))
        for code, begin, end in zip(codes.tolist(), begins, ends.tolist(), strict=True)
    ]
    tape = Tape(
        leaves=tuple(Leaf(k, n, float.fromhex(v)) for k, n, v in head["leaves"]),
        instructions=tuple(instructions),
        outputs=dict(head["outputs"]),
        names=dict(head["names"]),
    )
    paths = head["paths"]
    return DerivativeProgram(
        method=head["method"],
        tape=tape,
        of=tuple(head["of"]),
        wrt=tuple(head["wrt"]),
        passes=tuple(_pass(*fields) for fields in head["passes"]),
        paths=None
        if paths is None
        else {(a, b): tuple(tuple(p) for p in found) for (a, b), found in paths},
        primal_names=frozenset(head["primal_names"]),
    )


def _read_fields(read: Read) -> tuple[str, str, str, float]:
    return read.of, read.wrt, read.output, read.weight


def _pass(reads: list[Any], seeds: dict[str, float]) -> Pass:
    return Pass(tuple(Read(*fields) for fields in reads), seeds)
