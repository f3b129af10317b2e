"""Stage 8: the tape, a list of instructions in the order in which they were done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cgprimer.core.operations import find_primitive, float_arithmetic
from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.stages.backward_mistakes import explain_gradients
from cgprimer.course.checks.stages.stage import Ask, Case, Stage, Task, close, of_cases
from cgprimer.course.checks.stages.stage_diagnosis import Finding, finding
from cgprimer.course.checks.stages.student_graphs import OPERATIONS, parse_operation
from cgprimer.course.checks.stages.value_stages import LECTURE, LONG
from cgprimer.course.checks.verdicts import doubtful, right, waiting, wrong

_CASES = (
    Case("t1 = z*(-1); t2 = exp(t1); t3 = t2 + 1; y = 1/t3", {"z": 1.5}),
    Case("y = 6*(x1 + x2^2*x3)", {"x1": 1.0, "x2": 2.0, "x3": 3.0}),
    LECTURE,
)
_LEAVES = ("input", "constant", "const", "leaf", "")


def _long(answers: Sequence[Any]) -> Part:
    if answers[0]["error"]:
        says = "adjoints ends in a RecursionError: a tape is walked by a loop, from its end"
        return wrong("recursion too deep", says)
    if not close(answers[0]["first"], LONG + 1.0):
        return wrong("", "the adjoint of the first row is wrong")
    return right()


def _tape(case: Case, answer: Any) -> Part:
    tape = answer["tape"]
    if not tape:
        return wrong("empty tape", "there is a row for each input and each operation")
    for k, (op, operands, value) in enumerate(tape):
        where = f"row {k + 1}, {op!r}, of the tape of {case.text}"
        if operands is None:
            says = "a row is (operation, numbers of the rows of its operands, value)"
            return wrong("operands are no rows", says, where)
        if not isinstance(value, float):
            return wrong("values on the tape", f"its value is {value}", where)
        if any(not 0 <= operand < k for operand in operands):
            if tape.count([op, operands, value]) > 1:
                says = "a value that is used several times has several rows"
                return wrong("values listed twice", says, where)
            says = "an operand stands behind its user: a tape is in the order of execution"
            return wrong("child before parent", says, where)
        if not operands and parse_operation(op)[0] in _LEAVES:
            continue
        said, exponent = parse_operation(op)
        data = [tape[operand][2] for operand in operands]
        data += [exponent] if exponent is not None else []
        if said not in OPERATIONS:
            says = f"{op!r} is no operation that is known here"
            return doubtful("unusual operation", says)
        if len(data) != find_primitive(said).arity:
            says = "this is not its number of operands: an exponent is one, or stands in the name"
            return wrong("rows do not replay", f"{says}, as '**2'", where)
        if not close(value, float(float_arithmetic.float_function(said)(*data))):
            says = "the operation, done with the values of its operands, gives another value"
            return wrong("rows do not replay", says, where)
    if not close(tape[-1][2], case.values[-1]):
        return wrong("result not last", "the last row is the result")
    inputs = [value for op, operands, value in tape if not operands]
    if not all(any(close(v, float(case.at[n])) for v in inputs) for n in case.names):
        return wrong("inputs missing", "every input has a row without operands")
    return right()


def _adjoints(case: Case, answer: Any) -> Part | Finding:
    tape, bars = answer["tape"], answer["adjoints"]
    if any(operands is None or not all(0 <= i < k for i in operands)
           for k, (_, operands, _) in enumerate(tape)):  # fmt: skip
        return waiting("the tape is no tape yet")
    if bars is None or len(bars) != len(tape):
        return wrong("wrong length", "there is an adjoint for each row of the tape")
    leaves = {
        k: next((n for n in case.names if close(value, float(case.at[n]))), "")
        for k, (op, operands, value) in enumerate(tape)
        if not operands and parse_operation(op)[0] != "constant"
    }
    # Constants may have the value of an input: inputs come first, in the order of the function.
    first = [k for k, n in leaves.items() if n][: len(case.names)]
    found = [bars[k] for k in first]
    expected = [case.gradient[case.names.index(leaves[k])] for k in first]
    if close(found, expected) and first:
        return right()
    nodes = [
        {"data": value, "op": op, "parents": operands or [], "set": False, "grad": bar}
        for (op, operands, value), bar in zip(tape, bars, strict=True)
    ]
    causes = explain_gradients(nodes, {k: bars[k] for k in first}).matching
    mistake, says = next(iter(causes.items()), ("", "the adjoints of the inputs are wrong"))
    return finding(wrong(mistake, says, str(case)), causes)


TAPE = Stage(8, "tape", ("Value", "record", "adjoints"), (
    of_cases("the tape", 4, _CASES, _tape, "taped", False),
    of_cases("adjoints", 4, _CASES, _adjoints, "taped", True),
    Task("a long tape", 1, (Ask("long_tape", (LONG,)),), _long),
), (2, 3, 8))  # fmt: skip
