"""Stage 8: the tape, a list of instructions in the order in which they were done."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

from cgprimer.checking.results import Failure, Part
from cgprimer.checking.stages.graphs import OPERATIONS, explained, operation
from cgprimer.checking.stages.stage import Case, Stage, close, doubtful, failed, right, wrong
from cgprimer.core.primitives import floats, primitive

_CASES = (
    Case("t1 = z*(-1); t2 = exp(t1); t3 = t2 + 1; y = 1/t3", {"z": 1.5}),
    Case("y = 6*(x1 + x2^2*x3)", {"x1": 1.0, "x2": 2.0, "x3": 3.0}),
    Case(
        "xx = xa^2; xy = ab*xx + ac*xa; xz = bc*xx + xy; xw = cd*xx + xz^3",
        {"xa": 0.5, "ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0},
    ),
)
_LEAVES = ("input", "constant", "const", "leaf", "")
_LONG = 5_000


def _eighth(answers: Sequence[Any]) -> list[Part]:
    names = {"the tape": 4, "adjoints": 4}
    parts = []
    for (name, points), judged in zip(names.items(), (_tape, _adjoints), strict=True):
        own = answers[: len(_CASES)] if judged is _tape else answers[len(_CASES) :]
        found = [
            failed(name, points, answer, case.text)
            if isinstance(answer, Failure)
            else judged(name, points, case, answer)
            for case, answer in zip(_CASES, own, strict=False)
        ]
        parts.append(next((part for part in found if part.verdict != "right"), found[0]))
    name, answer = "a long tape", answers[-1]
    if isinstance(answer, Failure):
        return [*parts, failed(name, 1, answer)]
    if answer["error"]:
        says = "adjoints ends in a RecursionError: a tape is walked by a loop, from its end"
        return [*parts, wrong(name, 1, "recursion too deep", says)]
    if not close(answer["first"], _LONG + 1.0):
        return [*parts, wrong(name, 1, "", "the adjoint of the first row is wrong")]
    return [*parts, right(name, 1)]


def _tape(name: str, points: float, case: Case, answer: Any) -> Part:
    tape = answer["tape"]
    if not tape:
        return wrong(name, points, "empty tape", "there is a row for each input and each operation")
    for k, (op, operands, value) in enumerate(tape):
        where = f"row {k + 1}, {op!r}, of the tape of {case.text}"
        if operands is None:
            says = "a row is (operation, numbers of the rows of its operands, value)"
            return wrong(name, points, "operands are no rows", says, where)
        if not isinstance(value, float):
            return wrong(name, points, "values on the tape", f"its value is {value}", where)
        if any(not 0 <= operand < k for operand in operands):
            says = "an operand stands behind its user: a tape is in the order of execution"
            return wrong(name, points, "child before parent", says, where)
        if not operands and operation(op)[0] in _LEAVES:
            continue
        said, exponent = operation(op)
        data = [tape[operand][2] for operand in operands]
        data += [exponent] if exponent is not None else []
        if said not in OPERATIONS:
            says = f"{op!r} is no operation that is known here"
            return doubtful(name, points, "unusual operation", says)
        good = close(value, _replayed(said, data))
        if not good:
            says = "the operation, done with the values of its operands, gives another value"
            return wrong(name, points, "rows do not replay", says, where)
    if not close(tape[-1][2], case.values[-1]):
        return wrong(name, points, "result not last", "the last row is the result")
    inputs = [value for op, operands, value in tape if not operands]
    if not all(any(close(v, float(case.at[n])) for v in inputs) for n in case.names):
        return wrong(name, points, "inputs missing", "every input has a row without operands")
    return right(name, points)


def _replayed(name: str, data: Sequence[float]) -> float:
    """What an operation gives; nan where it takes another number of operands."""
    return float(floats.function(name)(*data)) if primitive(name).arity == len(data) else nan


def _adjoints(name: str, points: float, case: Case, answer: Any) -> Part:
    tape, bars = answer["tape"], answer["adjoints"]
    if any(operands is None or not all(0 <= i < k for i in operands)
           for k, (_, operands, _) in enumerate(tape)):  # fmt: skip
        return Part(name, points, 0, "not run", "", "the tape is no tape yet")
    if bars is None or len(bars) != len(tape):
        return wrong(name, points, "wrong length", "there is an adjoint for each row of the tape")
    leaves = {
        k: next((n for n in case.names if close(value, float(case.at[n]))), "")
        for k, (op, operands, value) in enumerate(tape)
        if not operands and operation(op)[0] != "constant"
    }
    # Constants may have the value of an input: inputs come first, in the order of the function.
    first = [k for k, n in leaves.items() if n][: len(case.names)]
    found = [bars[k] for k in first]
    expected = [case.gradient[case.names.index(leaves[k])] for k in first]
    if close(found, expected) and first:
        return right(name, points)
    nodes = [
        {"data": value, "op": op, "parents": operands or [], "set": False, "grad": bar}
        for (op, operands, value), bar in zip(tape, bars, strict=True)
    ]
    explanations = explained(nodes, {k: bars[k] for k in first})
    mistake, says = next(iter(explanations.items()), ("", "the adjoints of the inputs are wrong"))
    return wrong(name, points, mistake, says, str(case))


TAPE = Stage(
    8,
    "tape",
    ("Value", "record", "adjoints"),
    (
        *(case.asked("taped", swept) for swept in (False, True) for case in _CASES),
        {"call": "long_tape", "arguments": [_LONG]},
    ),
    _eighth,
    {"the tape": 4, "adjoints": 4, "a long tape": 1},
)
