"""What must be true of every plan, and of where its values live."""

from __future__ import annotations

from cgprimer.backends.plans.plan import AffineGroup, OuterProduct, Plan, PlanStep
from cgprimer.backends.plans.row_allocation import RowAllocation
from cgprimer.core.operations import primitives
from cgprimer.errors import TapeError

_ARITY = {"fma": 3, "fms": 3, "fnma": 3, "sincos": 1}  # of steps that are no primitives
_RESULTS = {"sincos": 2}
_SUMS = {"sum": 1, "dot": 2}
_APART = ("affine", "sincos")
_NOT_YET, _UNIFORM, _VARYING = 0, 1, 2


def checked_plan(plan: Plan) -> Plan:
    """The plan itself, if it keeps all rules.

    The rules: every value is computed once and before its use; what is computed once a call uses
    nothing that varies, and what is computed for every sample uses something that does; steps
    have as many operands and results as their kind; groups fit together and belong to the steps
    that stand for them; every accumulator is filled once; every output is there.

    Raises:
        TapeError: a rule is broken; the message says which step breaks it.
    """
    state = [_NOT_YET] * plan.size
    for index, leaf in enumerate(plan.tape.leaves):
        state[index] = _VARYING if leaf.kind == "column" else _UNIFORM
    arity = {row.name: row.arity for row in primitives()}
    for position, (name, operands, results) in enumerate(plan.uniform):
        where = f"uniform step {position}, {name!r}"
        if arity.get(name) != len(operands):
            raise _refused(where, f"is no primitive on {len(operands)} operands")
        if len(results) != 1:
            raise _refused(where, "has not one result")
        for operand in operands:
            if not 0 <= operand < plan.size or state[operand] != _UNIFORM:
                raise _refused(where, f"operand {operand} is not computed before, once a call")
        _mark(state, results[0], _UNIFORM, where)
    _check_varying(plan, state, arity | _ARITY)
    _check_outputs(plan, state)
    return plan


def _check_varying(plan: Plan, state: list[int], arity: dict[str, int]) -> None:
    """The steps for every sample."""
    size = plan.size
    filled = [False] * len(plan.accumulators)
    seen = 0
    for position, step in enumerate(plan.varying):
        name, operands, results = step
        if name not in arity and name not in _SUMS and name not in ("affine", "outer"):
            raise _refused(_place(position, step), "is of an unknown kind")
        varies = False
        for operand in operands:
            if not 0 <= operand < size or state[operand] == _NOT_YET:
                raise _refused(_place(position, step), f"operand {operand} is not computed before")
            if state[operand] == _VARYING:
                varies = True
        if not varies:
            raise _refused(_place(position, step), "uses nothing that varies with the sample")
        if name in arity:
            if len(operands) != arity[name]:
                raise _refused(_place(position, step), f"has {len(operands)} operands")
            if len(results) != _RESULTS.get(name, 1):
                raise _refused(_place(position, step), f"has {len(results)} results")
        else:
            where = _place(position, step)
            if name in _SUMS:
                _check_sum(plan, step, filled, where)
                continue
            seen += 1
            _check_group(plan, position, step, state, filled, where)
        for result in results:
            if not 0 <= result < size or state[result] != _NOT_YET:
                _mark(state, result, _VARYING, _place(position, step))  # refuses
            state[result] = _VARYING
    if seen != len(plan.groups):
        raise TapeError("a plan has a group that no step stands for")
    if not all(filled):
        raise TapeError(f"nothing is added to accumulator {filled.index(False)}")


def _check_sum(plan: Plan, step: PlanStep, filled: list[bool], where: str) -> None:
    name, operands, results = step
    if len(operands) != _SUMS[name] or len(results) != 1:
        raise _refused(where, f"has {len(operands)} operands and {len(results)} results")
    _fill(filled, results[0], where)
    if plan.accumulators[results[0]] != (operands[0] if name == "sum" else -1):
        raise _refused(where, f"accumulator {results[0]} is of another value")


def _check_group(
    plan: Plan, position: int, step: PlanStep, state: list[int], filled: list[bool], where: str
) -> None:
    group = plan.groups.get(position)
    if step.name == "affine":
        if not isinstance(group, AffineGroup):
            raise _refused(where, "has no affine group")
        _check_affine(step, group, state, where)
        return
    if not isinstance(group, OuterProduct):
        raise _refused(where, "has no outer group")
    if step.operands != (*group.left, *group.right) or step.results:
        raise _refused(where, "does not have its group's operands")
    if any(state[v] != _VARYING for v in step.operands):
        raise _refused(where, "has a factor that does not vary with the sample")
    if len(group.accumulators) != len(group.left) or {*map(len, group.accumulators)} != {
        len(group.right)
    }:
        raise _refused(where, "has a table of another shape than its group")
    for row in group.accumulators:
        for number in row:
            if number != -1:
                _fill(filled, number, where)
                if plan.accumulators[number] != -1:
                    raise _refused(where, f"accumulator {number} is of another value")


def _check_affine(step: PlanStep, group: AffineGroup, state: list[int], where: str) -> None:
    if step.operands != group.inputs or step.results != group.outputs:
        raise _refused(where, "does not have its group's operands and results")
    if len(set(group.inputs)) != len(group.inputs) or not group.outputs:
        raise _refused(where, "has an input twice, or no output")
    if any(state[v] != _VARYING for v in group.inputs):
        raise _refused(where, "has an input that does not vary with the sample")
    rows, biases = group.weights, group.biases
    if len(rows) != len(group.outputs) or len(biases) != len(group.outputs):
        raise _refused(where, "has not a row of weights and a bias for each output")
    for row in rows:
        if len(row) != len(group.inputs):
            raise _refused(where, "has not a weight for each input")
        for weight in row:
            if not 0 <= weight < len(state) or state[weight] != _UNIFORM:
                raise _refused(where, f"weight {weight} is not computed before, once a call")
    for bias in biases:
        if bias != -1 and not (0 <= bias < len(state) and state[bias] == _UNIFORM):
            raise _refused(where, f"bias {bias} is not computed before, once a call")


def _check_outputs(plan: Plan, state: list[int]) -> None:
    if {*plan.outputs, *plan.summed} != {*plan.tape.outputs} or {*plan.outputs} & {*plan.summed}:
        raise TapeError("a plan has other outputs than its tape")
    for name, index in plan.outputs.items():
        if not 0 <= index < plan.size or state[index] == _NOT_YET:
            raise TapeError(f"output {name!r} points at value {index}, which nobody computes")
        if plan.accumulators and state[index] == _VARYING:
            raise TapeError(f"output {name!r} varies with the sample and is not summed")
    for name, number in plan.summed.items():
        if not 0 <= number < len(plan.accumulators):
            raise TapeError(f"output {name!r} points at accumulator {number}")


def _mark(state: list[int], value: int, as_what: int, where: str) -> None:
    if not 0 <= value < len(state):
        raise _refused(where, f"computes value {value}, of {len(state)}")
    if state[value] != _NOT_YET:
        raise _refused(where, f"computes value {value}, which is there already")
    state[value] = as_what


def _fill(filled: list[bool], number: int, where: str) -> None:
    if not 0 <= number < len(filled):
        raise _refused(where, f"adds to accumulator {number}, of {len(filled)}")
    if filled[number]:
        raise _refused(where, f"adds to accumulator {number} a second time")
    filled[number] = True


def _place(position: int, step: PlanStep) -> str:
    return f"step {position}, {step.name!r}"


def _refused(where: str, what: str) -> TapeError:
    return TapeError(f"{where} {what}" if not what.startswith("operand") else f"{where}: {what}")


def checked_storage(plan: Plan, found: RowAllocation) -> RowAllocation:
    """The rows themselves, if no value is overwritten while it is needed.

    Runs through the steps with the values' numbers in the rows in place of values.

    Raises:
        TapeError: a step would read something else than it should.
    """
    held = [-1] * found.count
    given = [False] * plan.size  # values that are in no row
    for index in range(len(plan.tape.leaves)):
        given[index] = True
    for uniform in plan.uniform:
        given[uniform.results[0]] = True
    row_of = found.row_of
    for position, step in enumerate(plan.varying):
        name, operands, results = step
        for operand in operands:
            if not given[operand] and held[row_of.get(operand, 0)] != operand:
                raise TapeError(f"step {position}, {name!r}: value {operand} is not in its row")
        if name not in _SUMS and name != "outer":
            for result in results:
                row = row_of.get(result, -1)
                if not 0 <= row < found.count:
                    raise TapeError(f"step {position}, {name!r}: value {result} has no row")
                held[row] = result
            if name in _APART:
                _check_apart(position, step, row_of)
    for name, index in plan.outputs.items():
        if not given[index] and held[row_of.get(index, 0)] != index:
            raise TapeError(f"output {name!r} is not in its row at the end")
    return found


def _check_apart(position: int, step: PlanStep, row_of: dict[int, int]) -> None:
    written = {row_of[r] for r in step.results}
    read = {row_of[o] for o in step.operands if o in row_of}
    if len(written) != len(step.results) or written & read:
        where = f"step {position}, {step.name!r}"
        raise TapeError(f"{where}: its results lie on each other or on its operands")
