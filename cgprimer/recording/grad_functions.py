"""Backward functions of recorded operations, with PyTorch's interface: ``grad_fn``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.core.methods.reverse import SweepInstruction, sweep
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape_dependencies import reachable
from cgprimer.recording.backward_pass import accumulate_gradients, check_graph, prepare_seed
from cgprimer.recording.data_conversion import to_data
from cgprimer.recording.eager_builder import EAGER
from cgprimer.recording.recording_state import run_silently
from cgprimer.recording.value_base import (
    ValueBase,
    format_primitive_name,
    get_data,
    get_saved_context,
)

_MAX_DEPTH = 12  # of a printed chain


class GradFn:
    """The backward function of one recorded operation, as ``grad_fn`` in PyTorch.

    Called with the gradient of the operation's result, it applies the chain rule and returns the
    gradient of each operand (None for an operand that does not require grad). ``saved`` has the
    values that the function needs, ``next_functions`` the backward functions of the operands;
    ``_saved_self``, ``_saved_other`` and ``_saved_result`` are PyTorch's names. Calling
    ``AccumulateGrad`` adds the gradient to ``grad`` of a leaf.

    >>> from cgprimer import Value
    >>> w, b = Value(1.0, name="w"), Value(2.0, name="b")
    >>> print((3.0*w + b).sin().grad_fn)
    Sin -> Add -> (Mul -> (None, AccumulateGrad w), AccumulateGrad b)
    >>> product = (w*b).grad_fn
    >>> product(10.0), product.saved
    ((20.0, 10.0), {'self': 1.0, 'other': 2.0})
    """

    def __init__(self, value: ValueBase) -> None:
        self.variable: Any = value

    @property
    def name(self) -> str:
        """The name of the operation, such as ``Mul``; ``AccumulateGrad`` for a leaf."""
        words = format_primitive_name(self.variable.primitive).split("_")
        return "".join(w[:1].upper() + w[1:] for w in words) or "AccumulateGrad"

    @property
    def next_functions(self) -> tuple[tuple[GradFn | None, int], ...]:
        """Pairs ``(grad_fn, 0)`` of all operands; ``(None, 0)`` without ``requires_grad``."""
        return tuple((_create_operand_grad_fn(operand), 0) for operand in self.variable.operands)

    def __call__(self, gradient: Any) -> tuple[Any, ...]:
        """Return the gradient of each operand, given the gradient of the result.

        Args:
            gradient: upstream gradient, in the shape of the result.

        Raises:
            DifferentiationError: the gradient has another shape, or the graph was freed.
        """
        value = self.variable
        gradient = to_data(get_data(gradient))
        if not value.primitive:
            accumulate_gradients(value, gradient, free=False)
            return ()
        check_graph([self.variable])
        seed, data = prepare_seed(value, gradient), _get_operand_data(value)
        operands = [  # one key per operand, because a value can be an operand twice
            ValueBase(d) if getattr(operand, "requires_grad", False) else None
            for operand, d in zip(value.operands, data, strict=True)
        ]
        totals: dict[Any, Any] = {None: seed}
        instruction = SweepInstruction(None, value.primitive, tuple(operands), data, value._data)
        run_silently(sweep, EAGER, [instruction], totals)
        return tuple(
            None if operand is None else totals.get(operand, EAGER.broadcast(0.0, np.shape(d)))
            for operand, d in zip(operands, data, strict=True)
        )

    @property
    def saved(self) -> dict[str, Any]:
        """The operands and the result that this backward function needs, keyed by name.

        The names are ``self``, ``other`` (``operand_0`` and so on for more than two operands) and
        ``result``. A :class:`cgprimer.Function` has ``saved_tensors``.

        Raises:
            DifferentiationError: the graph was freed.
        """
        value = self.variable
        if not value.primitive:
            return {}
        check_graph([self.variable])
        context = get_saved_context(value.primitive)
        if context is not None:
            return {"saved_tensors": context.saved}
        count = len(value.operands)
        names = ["self", "other"][:count] if count < 3 else [f"operand_{k}" for k in range(count)]
        data = dict(zip((*names, "result"), (*_get_operand_data(value), value._data), strict=True))
        return {name: data[name] for name in _find_saved_names(value, tuple(names)) if name in data}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_") and name[7:] in (saved := self.saved):
            return saved[name[7:]]
        if name == "saved_tensors" and name in (saved := self.saved):
            return saved[name]
        raise AttributeError(f"{self.name} has no attribute {name!r}")

    def __repr__(self) -> str:
        variable = f" {self.variable.name}" if self.name == "AccumulateGrad" else ""
        return f"<{self.name}{variable.rstrip()}>"

    def __str__(self) -> str:
        return _format_chain(self, _MAX_DEPTH)


def create_grad_fn(value: ValueBase) -> GradFn | None:
    """Return the backward function of a value; None for leaves and constants."""
    return GradFn(value) if value.primitive and value.requires_grad else None


def _create_operand_grad_fn(operand: Any) -> GradFn | None:
    """Return the backward function of an operand: ``AccumulateGrad`` for a leaf."""
    return GradFn(operand) if getattr(operand, "requires_grad", False) else None


def _get_operand_data(value: ValueBase) -> tuple[Any, ...]:
    """Return the data of the operands of a value."""
    return tuple(map(get_data, value.operands))


def _find_saved_names(value: ValueBase, names: tuple[str, ...]) -> list[str]:
    """Return the names of the operands and results that the backward function of a value reads.

    The rules are emitted to a tape, whose used leaves are the operands and results to save.
    """
    builder = Builder()
    shapes = [EAGER.shape(data) for data in (*_get_operand_data(value), value._data)]
    leaves = [
        builder.leaf("column", name, shape=shape)
        for name, shape in zip((*names, "result"), shapes, strict=True)
    ]
    bar = builder.leaf("column", "gradient", shape=shapes[-1])
    tails = tuple(
        k if getattr(operand, "requires_grad", False) else None
        for k, operand in enumerate(value.operands)
    )
    totals: dict[Any, Any] = {None: bar}
    sweep(
        builder,
        [SweepInstruction(None, value.primitive, tails, tuple(leaves[:-1]), leaves[-1])],
        totals,
    )
    gradients = [index for key, index in totals.items() if key is not None]
    tape = builder.finish({f"gradient_{k}": index for k, index in enumerate(gradients)})
    needed = reachable(tape, [tape.outputs[f"gradient_{k}"] for k in range(len(gradients))])
    return [leaf.name for leaf, used in zip(tape.leaves, needed, strict=False) if used]


def _format_chain(function: GradFn | None, depth: int) -> str:
    """Format a backward function and its successors, down to a depth."""
    if function is None:
        return "None"
    name = repr(function)[1:-1]
    successors = [f for f, _ in function.next_functions]
    if not successors:
        return name
    if not depth:
        return f"{name} -> ..."
    chains = ", ".join(_format_chain(f, depth - 1) for f in successors)
    return f"{name} -> {chains}" if len(successors) == 1 else f"{name} -> ({chains})"
