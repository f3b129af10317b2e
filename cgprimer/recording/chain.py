"""The chain of functions that a backward pass goes through, in PyTorch's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cgprimer.recording.eager import called

if TYPE_CHECKING:
    from cgprimer.recording.value import Value


class GradFn:
    """A function of the backward pass: ``next_functions`` are those of the operands.

    >>> from cgprimer import Value
    >>> w, b = Value(1.0, name="w"), Value(2.0, name="b")
    >>> print((3.0*w + b).sin().grad_fn)
    Sin -> Add -> (Mul -> (None, AccumulateGrad w), AccumulateGrad b)
    """

    def __init__(self, value: Value) -> None:
        self.variable = value

    @property
    def name(self) -> str:
        """``Mul`` for a product; ``AccumulateGrad`` where a gradient is added up."""
        kind = called(self.variable.primitive)
        words = kind.split("_")
        return "".join(w[0].upper() + w[1:] for w in words) if kind else "AccumulateGrad"

    @property
    def next_functions(self) -> tuple[tuple[GradFn | None, int], ...]:
        """For each operand its function and 0; None where nothing flows."""
        return tuple((function_of(operand), 0) for operand in self.variable.operands)

    def __repr__(self) -> str:
        called = f" {self.variable.name}" if self.name == "AccumulateGrad" else ""
        return f"<{self.name}{called.rstrip()}>"

    def __str__(self) -> str:
        return _text(self, 12)


def function_of(operand: Any) -> GradFn | None:
    """The function of an operand: of a leaf that requires a gradient, the one that adds it up."""
    return GradFn(operand) if getattr(operand, "requires_grad", False) else None


def chain_of(value: Value) -> GradFn | None:
    """The chain that a value's backward pass goes through; None for leaves and constants."""
    return GradFn(value) if value.primitive and value.requires_grad else None


def _text(function: GradFn | None, depth: int) -> str:
    if function is None:
        return "None"
    own = repr(function)[1:-1]
    following = [f for f, _ in function.next_functions]
    if not following:
        return own
    if not depth:
        return f"{own} -> ..."
    texts = ", ".join(_text(f, depth - 1) for f in following)
    return f"{own} -> {texts}" if len(following) == 1 else f"{own} -> ({texts})"
