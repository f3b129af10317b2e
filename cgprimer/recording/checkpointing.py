"""Gradient checkpointing: intermediate results are recomputed in the backward pass.

Source: the interface of ``torch.utils.checkpoint``; Griewank and Walther, "Evaluating
Derivatives", 2nd ed., chapter 12.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np

from cgprimer.core.operations.custom_operations import CustomCall
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.recording.backward_pass import compute_adjoints
from cgprimer.recording.custom_functions import CustomOperation
from cgprimer.recording.eager_builder import EAGER
from cgprimer.recording.recording_state import State, next_serial, set_recording
from cgprimer.recording.value_base import ValueBase, list_ancestors, lock_leaves


class _Recomputation(CustomOperation):
    """An operation whose backward pass recomputes a function and differentiates it."""

    def __init__(
        self, function: Any, arguments: Any, operands: tuple[Any, ...], result: Any
    ) -> None:
        self.function, self.name = function, getattr(function.func, "__name__", "function")
        self.arguments, self.positions = arguments, []
        self._operands, self._result = operands, result
        self._latest = (None, [])

    def __repr__(self) -> str:
        return f"{self.name} {id(self)}"  # each call is unique, and arguments may be long

    def compute_operand_adjoints(self, adjoint: Any, values: Sequence[Any]) -> list[Any]:
        """Run the function again with recording and return the adjoints of all operands."""
        with set_recording(True):
            start = next_serial()
            result: Any = self.function(*self.arguments)
            same = result._data == self._result  # slower only if there are nans
            if not np.all(same) and not np.array_equal(result._data, self._result, equal_nan=True):
                raise DifferentiationError(
                    f"{self.name} returned a different result when checkpoint() recomputed it in"
                    " the backward pass",
                    hint="pass a deterministic function of its arguments to checkpoint()",
                )
            nested = isinstance(values[-1], ValueBase)
            totals = compute_adjoints(result, adjoint, create_graph=nested, leaf_serial=start)
        return [totals[o] if o in totals else np.zeros_like(o._data) for o in self._operands]


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose intermediate results are recomputed in the backward pass, not stored.

    The graph keeps only the result, and the backward pass runs the function a second time.
    Arguments and variables of enclosing scopes may be values; the function must return one value.

    Raises:
        UsageError: ``function`` is not callable, or does not return a single value.
        DifferentiationError: in the backward pass, if the second run returns a different result.

    >>> from cgprimer import Value, checkpoint
    >>> x = Value(0.5)
    >>> y = checkpoint(lambda x: (x*x).tanh().exp())(x)
    >>> y.grad_fn
    <<lambda>>
    >>> y.backward()
    >>> round(x.grad, 12)
    1.200885324466
    """
    if not callable(function):
        raise UsageError(f"checkpoint() requires a function, got {function!r}")

    @wraps(function)
    def checkpointed(*arguments: Any, **options: Any) -> Any:
        """Call the function and keep only its result in the graph."""
        start, run = next_serial(), partial(function, **options)
        result = run(*arguments)
        thread = State.thread
        if not thread.recording or thread.with_lines:  # record() shows all operations
            return result
        if isinstance(result, float | np.ndarray | np.generic):  # computed from plain numbers
            return result
        if not isinstance(result, ValueBase):
            raise UsageError(
                "the function passed to checkpoint() must return a single Value, got"
                f" {type(result).__name__}"
            )
        if not result.requires_grad or result.serial <= start:
            return result
        ancestors = list_ancestors([result], lambda v: v.operands if v.serial > start else ())
        operands = tuple(v for v in ancestors if v.serial <= start and v.requires_grad)
        lock_leaves(operands)
        operation = _Recomputation(run, arguments, operands, result._data)
        return EAGER.create_value(result._data, CustomCall(operation), operands)

    return checkpointed
