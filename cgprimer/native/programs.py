"""Derivative programs as engines want them: known by content, kept on disk, all passes in one tape.

A second process need not derive a large program again. It is plain data, so it is kept as that.
"""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any

from cgprimer.cache import key_of, load, package_state, store
from cgprimer.core.methods import differentiate
from cgprimer.core.methods.contract import DerivativeProgram, Pass, Read
from cgprimer.core.primitives import primitive
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import with_seeds
from cgprimer.core.tape.tape import Instruction, Leaf, Tape
from cgprimer.garbage_collection import collector_paused

WORTH_KEEPING = 500  # instructions; smaller tapes are differentiated faster than a file is found
LARGEST = 200_000  # instructions of all passes together; beyond, passes are run one by one
_new = tuple.__new__  # a third of the time of Instruction(...)


def fingerprint(tape: Tape) -> str:
    """A name for a tape's content: leaves, instructions, outputs, and the rows they stand for.

    Two tapes of one fingerprint compute the same; names of inner values do not count.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.core.tape.lowering import lower
    >>> one, two, other = (lower(parse(f"xw = k{sign}xa")) for sign in "**+")
    >>> fingerprint(one) == fingerprint(two), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    names, operands = zip(*tape.instructions, strict=True) if tape.instructions else ((), ())
    used = sorted(set(names))
    rows = [(row.name, row.partials, row.built_in) for row in map(primitive, used)]
    leaves = [(leaf.kind, leaf.name, leaf.value.hex()) for leaf in tape.leaves]
    # Version 2 of marshal writes equal things alike; later ones look at reference counts.
    data = marshal.dumps((names, operands, leaves, list(tape.outputs.items()), rows), 2)
    return hashlib.sha256(data).hexdigest()


def shareable(tape: Tape) -> bool:
    """Whether what is made of the tape may be kept for other processes: built-in rows alone."""
    return all(primitive(name).built_in for name in {name for name, _ in tape.instructions})


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
    # Partials may bring in primitives that the tape had not.
    if program.seeds_only and shareable(program.tape):
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
    number = {name: k for k, name in enumerate({name: 0 for name, _ in tape.instructions})}
    lengths = [len(operands) for _, operands in tape.instructions]
    flat = [operand for _, operands in tape.instructions for operand in operands]
    codes = [number[name] for name, _ in tape.instructions]
    passes = [(run.reads, run.seeds) for run in program.passes]
    paths = None if program.paths is None else list(program.paths.items())
    parts = (tape.leaves, list(number), codes, lengths, flat, tape.outputs, tape.names)
    primal, by_column = sorted(program.primal_names), program.by_column
    rest = (program.method, program.of, program.wrt, passes, paths, primal, by_column)
    return json.dumps((parts, rest)).encode()


@collector_paused()
def from_bytes(data: bytes) -> DerivativeProgram:
    """The reverse of :func:`to_bytes`."""
    parts, (method, of, wrt, passes, paths, primal_names, by_column) = json.loads(data)
    leaves, primitives, codes, lengths, flat, outputs, names = parts
    instructions = [
        _new(Instruction, (primitives[code], tuple(flat[end - length : end])))
        for code, length, end in zip(codes, lengths, accumulate(lengths), strict=True)
    ]
    if paths is not None:
        paths = {(a, b): tuple(map(tuple, found)) for (a, b), found in paths}
    runs = [Pass(tuple([Read(*read) for read in reads]), seeds) for reads, seeds in passes]
    columns = tuple([Leaf(k, n, v, tuple(shape)) for k, n, v, shape in leaves])
    tape, primal = Tape(columns, tuple(instructions), outputs, names), frozenset(primal_names)
    return DerivativeProgram(
        method, tape, tuple(of), tuple(wrt), tuple(runs), paths, primal, by_column=by_column
    )


@collector_paused()
def joined_passes(program: DerivativeProgram) -> Tape | None:
    """A tape whose outputs are the value and the derivatives, in the order of ``program.wrt``.

    What passes have in common, the primal above all, is in it once. None for finite differences
    (their quotients are not part of any tape) and for programs too large to be put together.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = a*xa + b*xa^2"))
    >>> program = cgprimer.differentiate(tape, method="forward")
    >>> program.pass_count, list(joined_passes(program).outputs)
    (2, ['xw', 'd.xw.d.a', 'd.xw.d.b'])
    """
    of = program.of[0]
    if not program.seeds_only or len(program.of) > 1 or program.operation_count > LARGEST:
        return None
    builder = Builder()
    totals: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for run in program.passes:
        tape = with_seeds(program.tape, run.seeds) if run.seeds else program.tape
        # Without names nothing is pinned, so that the passes share what is equal.
        value = builder.extend(replace(tape, names={}))
        outputs.setdefault(of, value[tape.outputs[of]])
        for read in run.reads:
            weight, share = builder.constant(read.weight), value[tape.outputs[read.output]]
            share = builder.emit("mul", weight, share)  # the share itself if the weight is 1
            known = totals.get(read.wrt)
            totals[read.wrt] = share if known is None else builder.emit("add", known, share)
    for name in program.wrt:
        outputs[f"d.{of}.d.{name}"] = totals[name]
    return builder.finish(outputs, prune=True)
