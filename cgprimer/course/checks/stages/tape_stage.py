"""Stage 8: the tape, a list of instructions in the order of execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cgprimer.core.operations import find_primitive, float_arithmetic
from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.stages.backward_mistakes import explain_gradients
from cgprimer.course.checks.stages.stage import (
    Case,
    DriverCall,
    Stage,
    Task,
    build_task,
    is_close,
)
from cgprimer.course.checks.stages.stage_diagnosis import Finding, create_finding
from cgprimer.course.checks.stages.student_graphs import OPERATIONS, parse_operation
from cgprimer.course.checks.stages.value_stages import CHAIN_LENGTH, LECTURE
from cgprimer.course.checks.verdicts import accept, postpone, reject, suspect

_CASES = (
    Case("t1 = z*(-1); t2 = exp(t1); t3 = t2 + 1; y = 1/t3", {"z": 1.5}),
    Case("y = 6*(x1 + x2^2*x3)", {"x1": 1.0, "x2": 2.0, "x3": 3.0}),
    LECTURE,
)
_LEAVES = ("input", "constant", "const", "leaf", "")
Row = tuple[str, list[int] | None, float]  #: operation, rows of the operands, value


def _judge_long_tape(answers: Sequence[Any]) -> Part:
    """Judge whether the student's adjoints of a long tape are computed correctly."""
    if answers[0]["error"]:
        message = "adjoints raises a RecursionError: process the tape in a loop, from last to first"
        return reject("recursion too deep", message)
    if not is_close(answers[0]["first"], CHAIN_LENGTH + 1.0):
        return reject("", "the adjoint of the first row is wrong")
    return accept()


def _judge_tape(case: Case, answer: Any) -> Part:
    """Judge the rows of a student's tape."""
    tape: list[Row] = answer["tape"]
    if not tape:
        return reject("empty tape", "the tape must have a row for each input and each operation")
    for index in range(len(tape)):
        part = _check_row(case, tape, index)
        if part is not None:
            return part
    if not is_close(tape[-1][2], case.values[-1]):
        return reject("result not last", "the last row must be the result")
    inputs = [value for _, operands, value in tape if not operands]
    if not all(any(is_close(v, float(case.at[n])) for v in inputs) for n in case.names):
        return reject("inputs missing", "every input must have a row without operands")
    return accept()


def _check_row(case: Case, tape: Sequence[Row], index: int) -> Part | None:
    """Return the verdict on one row of a student's tape if it is wrong, else None."""
    operation, operands, value = tape[index]
    where = f"row {index + 1}, {operation!r}, of the tape of {case.text}"
    if operands is None:
        message = "a row must be (operation, row numbers of the operands, value)"
        return reject("operands are not rows", message, where)
    if not isinstance(value, float):
        return reject(
            "values on the tape", f"the value of a row must be a number, got {value}", where
        )
    if any(not 0 <= operand < index for operand in operands):
        if list(tape).count(tape[index]) > 1:
            message = "a value that is used several times has several rows"
            return reject("values listed twice", message, where)
        message = (
            "an operand comes after a row that uses it: rows must be in the order of execution"
        )
        return reject("child before parent", message, where)
    name, exponent = parse_operation(operation)
    if not operands and name in _LEAVES:
        return None
    if name not in OPERATIONS:
        return suspect("unusual operation", f"unknown operation {operation!r}")
    data = [tape[operand][2] for operand in operands]
    data += [exponent] if exponent is not None else []
    if len(data) != find_primitive(name).arity:
        message = (
            "the row has the wrong number of operands; an exponent must be an operand or part of"
            " the name, such as '**2'"
        )
        return reject("rows do not replay", message, where)
    if not is_close(value, float(float_arithmetic.float_function(name)(*data))):
        message = "the operation, applied to the values of its operands, gives another value"
        return reject("rows do not replay", message, where)
    return None


def _judge_adjoints(case: Case, answer: Any) -> Part | Finding:
    """Judge the adjoints that a student computes from the tape."""
    tape: list[Row] = answer["tape"]
    adjoints = answer["adjoints"]
    if any(operands is None or not all(0 <= i < k for i in operands)
           for k, (_, operands, _) in enumerate(tape)):  # fmt: skip
        return postpone("adjoints are checked only after the tape is correct")
    if adjoints is None or len(adjoints) != len(tape):
        return reject("wrong length", "adjoints must return one adjoint per row of the tape")
    names = {
        k: next((n for n in case.names if is_close(value, float(case.at[n]))), "")
        for k, (operation, operands, value) in enumerate(tape)
        if not operands and parse_operation(operation)[0] != "constant"
    }
    # Constants may be equal to an input: inputs come first, in the order of the function.
    inputs = [k for k, name in names.items() if name][: len(case.names)]
    expected = [case.gradient[case.names.index(names[k])] for k in inputs]
    if inputs and is_close([adjoints[k] for k in inputs], expected):
        return accept()
    nodes = [
        {"data": value, "op": op, "parents": operands or [], "set": False, "grad": adjoint}
        for (op, operands, value), adjoint in zip(tape, adjoints, strict=True)
    ]
    causes = explain_gradients(nodes, {k: adjoints[k] for k in inputs}).matching
    mistake, message = next(iter(causes.items()), ("", "the adjoints of the inputs are wrong"))
    return create_finding(reject(mistake, message, str(case)), causes)


TAPE = Stage(8, "tape", ("Value", "record", "adjoints"), (
    build_task("the tape", 4, _CASES, _judge_tape, "record_tape", False),
    build_task("adjoints", 4, _CASES, _judge_adjoints, "record_tape", True),
    Task("a long tape", 1, (DriverCall("sweep_long_tape", (CHAIN_LENGTH,)),), _judge_long_tape),
), (2, 3, 8))  # fmt: skip
