"""The backward pass: reverse mode over recorded values, from the last to the first.

There are three implementations. A graph of scalars only is differentiated by
:mod:`cgprimer.recording.scalar_sweep`, a graph with the structure of an earlier graph by a cached
pass (:mod:`cgprimer.recording.cached_passes`), and any other graph by reverse mode of the core.
Without the first, a loop over scalars takes five times as long; without the second, a training
iteration on small arrays takes three times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from threading import RLock
from typing import Any

import numpy as np

from cgprimer.core.methods.reverse import SweepInstruction, sweep
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.errors import DifferentiationError
from cgprimer.recording.cached_passes import CachedPass, find_or_compile_pass, find_recent_pass
from cgprimer.recording.eager_builder import EAGER
from cgprimer.recording.recording_state import State, run_silently
from cgprimer.recording.scalar_sweep import FREED_NAMES, UNREACHED, sweep_scalars
from cgprimer.recording.value_base import (
    ValueBase,
    detect_changes,
    format_primitive_name,
    get_data,
    is_freed,
    unlock_leaves,
)
from cgprimer.support.garbage_collection import pause_garbage_collection


def compute_adjoints(
    result: ValueBase, gradient: Any = None, *, create_graph: bool = False, leaf_serial: int = 0
) -> dict[ValueBase, Any]:
    """Compute the adjoints of all values that ``result`` depends on and that require grad.

    Args:
        result: the value to differentiate.
        gradient: upstream gradient of ``result``; 1 by default for a scalar.
        create_graph: record the backward pass, so that the adjoints can be differentiated.
        leaf_serial: values with serial numbers up to this one are treated as leaves.

    Raises:
        DifferentiationError: for the same reasons as :meth:`Value.backward`.
    """
    seed, totals = prepare_seed(result, gradient), dict[ValueBase, Any]()
    with _mark_ancestors(result, leaf_serial) as order:
        names = check_graph(order, leaf_serial)
        if not (leaf_serial or create_graph) and _has_only_scalars(order, names):
            sweep_scalars(order, seed, totals=totals)
            return totals
        _remove_marks(order)
    totals[result] = seed
    inner = [value for value in order if value.serial > leaf_serial]
    instructions = [_make_sweep_instruction(value, as_values=create_graph) for value in inner]
    run_silently(sweep, EAGER, instructions, totals)
    if not create_graph:
        for value in inner:
            unlock_leaves(value.operands)
    return totals


def accumulate_gradients(result: ValueBase, gradient: Any, *, free: bool) -> None:
    """Run a backward pass and add the gradients to ``_grad`` of leaves and of computed scalars.

    Args:
        result: the value to differentiate.
        gradient: upstream gradient of ``result``; None for 1.
        free: free the graph during the pass, each array after its last use.
    """
    detect_changes()
    seeded = gradient is not None
    program, values = find_recent_pass(result, seeded=seeded)
    if program is not None:
        seed = prepare_seed(result, gradient) if seeded else 1.0
        if State.last_change > values[program.inner[-1]].serial:
            _check_versions(values[: program.n_ordered], 0)
    else:
        seed = prepare_seed(result, gradient)
        with pause_garbage_collection(), _mark_ancestors(result) as order:
            names = check_graph(order)
            if _has_only_scalars(order, names):
                sweep_scalars(order, seed, free=free)
                return
            _remove_marks(order)
        program, values = run_silently(find_or_compile_pass, order, seeded)
    if program is not None:
        totals = _run_cached_pass(program, values, seed, free=free)
    else:
        totals = {result: seed}
        order.reverse()
        run_silently(sweep, EAGER, _generate_sweep_instructions(order, totals, free=free), totals)
    del seed
    _add_gradients_to_leaves(totals)


def _run_cached_pass(
    program: CachedPass, values: list[Any], seed: Any, *, free: bool
) -> dict[ValueBase, Any]:
    """Run a cached backward pass and return the adjoints of the leaves."""
    totals = program(values, seed)
    for position in program.inner:
        value = values[position]
        if value._data.__class__ is float:
            _store_and_free(value, totals, free=free)
        elif free:
            value.primitive, value.operands = FREED_NAMES[value.primitive], ()
    for value in values[: program.n_values]:
        if value._in_use:
            value._unlock_data()
    return totals


def _generate_sweep_instructions(
    order: list[ValueBase], totals: dict[ValueBase, Any], *, free: bool
) -> Iterator[SweepInstruction]:
    """Yield the backward instruction of each value, and free the value after its instruction."""
    while order:
        value = order.pop()
        if value.primitive:
            yield _make_sweep_instruction(value, as_values=False)
            unlock_leaves(value.operands)
            _store_and_free(value, totals, free=free)


def _store_and_free(value: ValueBase, totals: dict[ValueBase, Any], *, free: bool) -> None:
    """Add the adjoint of a scalar value to its gradient; free the value if ``free`` is True."""
    bar = totals.pop(value, None)
    if bar is not None and value._data.__class__ is float:
        value._repeats += value._grad is not None
        value._grad = float(bar) + (value._grad or 0.0)
    if free:
        value.primitive, value.operands = FREED_NAMES[value.primitive], ()


_pass_lock = RLock()  # passes store marks and gradients in the values: one at a time


def _add_gradients_to_leaves(totals: dict[ValueBase, Any]) -> None:
    """Move the adjoints in ``totals`` into the gradients of leaves, in the dtype of their data."""
    adopted = set()  # arrays in use as a gradient: two leaves may share an adjoint
    with _pass_lock:
        while totals:
            leaf, bar = totals.popitem()
            bar = get_data(bar)
            dtype = getattr(leaf._data, "dtype", None)
            if dtype is None:
                bar = float(bar)
            elif getattr(bar, "dtype", None) != dtype:
                bar = np.array(bar, dtype)
            if leaf._grad is not None:
                leaf._grad = leaf._grad + bar
                leaf._repeats += 1
            elif dtype is None or (bar.base is None and id(bar) not in adopted):
                leaf._grad = bar
                adopted.add(id(bar))
            else:
                leaf._grad = np.array(bar)


def prepare_seed(result: ValueBase, gradient: Any) -> Any:
    """Check and convert the upstream gradient of a backward pass; 1 by default for a scalar."""
    if not result.requires_grad:
        raise DifferentiationError(
            "this Value does not require grad and has no grad_fn",
            hint="create parameters with Value(..., requires_grad=True), and update them in place"
            " under no_grad(): w -= step instead of w = w - step",
        )
    shape = EAGER.shape(result)
    if gradient is None:
        if shape:
            raise DifferentiationError(
                f"a gradient can be created implicitly only for scalar outputs, got shape {shape}",
                hint="reduce the output with sum(), or pass an upstream gradient:"
                " backward(np.ones(value.shape))",
            )
        return 1.0 if type(result._data) is float else result._data.dtype.type(1.0)
    if EAGER.shape(gradient) != shape:
        raise DifferentiationError(
            f"the upstream gradient must have shape {shape}, got {EAGER.shape(gradient)}"
        )
    if isinstance(gradient, ValueBase):
        return gradient
    return (
        float(gradient) if type(result._data) is float else np.asarray(gradient, result._data.dtype)
    )


@contextmanager
def _mark_ancestors(root: ValueBase, leaf_serial: int = 0) -> Iterator[list[ValueBase]]:
    """Mark the values that require grad and that ``root`` depends on; yield them, latest first.

    ``_bar`` of a marked value is not None. If an exception (such as Ctrl-C) ends the block, the
    marks are removed, because they would confuse the next pass.
    """
    order, value_class = [root], EAGER.value_class
    add = order.append
    with _pass_lock:
        try:
            root._bar = UNREACHED
            for value in order:  # the list grows meanwhile
                if value.serial > leaf_serial:
                    for operand in value.operands:
                        if operand.__class__ is not value_class and not isinstance(
                            operand, ValueBase
                        ):
                            continue
                        if operand._bar is None and operand.requires_grad:
                            add(operand)
                            operand._bar = UNREACHED
            order.sort(key=attrgetter("serial"), reverse=True)
            yield order
        except BaseException:
            _remove_marks(order)
            raise


def _remove_marks(order: list[ValueBase]) -> None:
    """Remove the marks of a backward pass: set ``_bar`` of all values to None."""
    for value in order:
        value._bar = None


def _has_only_scalars(order: list[ValueBase], names: set[Applied]) -> bool:
    """Return whether all values are floats and all primitives are elementwise."""
    types = set(map(type, map(attrgetter("_data"), order)))
    return types == {float} and all(isinstance(name, str) for name in names)


def check_graph(order: list[ValueBase], leaf_serial: int = 0) -> set[Applied]:
    """Check that a graph can be differentiated, and return the set of its primitives.

    Raises:
        DifferentiationError: the graph was freed, or data were modified in place after use.
    """
    detect_changes()
    names = set(map(attrgetter("primitive"), order))
    for name in names:
        if is_freed(name):
            raise DifferentiationError(
                "cannot run backward through the graph a second time: the first pass freed the"
                f" saved values of {format_primitive_name(name)!r}",
                hint="pass retain_graph=True to the first backward(), or compute the result again",
            )
    first_serial = next((v.serial for v in reversed(order) if v.operands), State.last_change)
    if State.last_change > first_serial:
        _check_versions(order, leaf_serial)
    return names


def _check_versions(order: list[ValueBase], leaf_serial: int) -> None:
    """Raise DifferentiationError if a value or operand was modified in place after it was used."""
    for value in order:
        for operand in (
            (value, *value.operands) if value.operands and value.serial > leaf_serial else ()
        ):
            if isinstance(operand, ValueBase) and operand._version > value.serial:
                subject = f"the value {operand.name!r}" if operand.name else "a value"
                raise DifferentiationError(
                    f"{subject} needed for the gradient of"
                    f" {format_primitive_name(value.primitive)!r} was modified in place",
                    hint="modify it after backward(), or compute the result again",
                )


def _make_sweep_instruction(value: ValueBase, *, as_values: bool) -> SweepInstruction:
    """Create the backward instruction of a value, with values or their data as operands."""
    tails: list[Any] = []
    operands: list[Any] = []
    for operand in value.operands:
        if type(operand) is float or not isinstance(operand, ValueBase):
            tails.append(None)
            operands.append(operand)
        else:
            tails.append(operand if operand.requires_grad else None)
            operands.append(operand if as_values else operand._data)
    result = value if as_values else value._data
    return SweepInstruction(value, value.primitive, tuple(tails), tuple(operands), result)
