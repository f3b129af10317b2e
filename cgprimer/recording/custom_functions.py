"""Functions with a custom backward pass, after the interface of ``torch.autograd.Function``.

A recorded call is one structural primitive, ``custom``, whose rule for reverse mode calls the
function's ``backward``. On a tape the rule is an instruction, ``backward``, which runs the forward
pass again for its context.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.operations.custom_operations import Custom, CustomBackward
from cgprimer.errors import DifferentiationError, UsageError, pluralize
from cgprimer.recording.data_conversion import to_data
from cgprimer.recording.eager_builder import EAGER, EagerBuilder
from cgprimer.recording.recording_state import set_recording
from cgprimer.recording.value_base import ValueBase


class Context:
    """Storage of values that a forward pass saves for its backward pass.

    ``forward`` calls ``ctx.save(...)``; ``backward`` reads ``ctx.saved``.

    Attributes:
        saved: the values that were saved.
        needs_input_grad: for each argument of ``forward``, whether its gradient is needed;
            ``backward`` may return None for the others.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...] = ()) -> None:
        self.saved: tuple[Any, ...] = ()
        self.needs_input_grad = needs_input_grad

    def save(self, *values: Any) -> None:
        """Save values for the backward pass; writable arrays are copied."""
        self.saved = tuple([v.copy() if _is_writable(v) else v for v in values])

    save_for_backward = save  # PyTorch's names
    saved_tensors = property(lambda self: self.saved)


class Function:
    """A function with a custom backward pass, which need not be its derivative.

    Write two static methods. ``forward(ctx, ...)`` receives plain numbers and read-only arrays and
    returns one number or array. ``backward(ctx, grad)`` receives the adjoint of the result and
    returns the adjoint of each argument of ``forward``, None for an argument without one.
    Arguments with a default value may be omitted; ``backward`` then returns None for them, or
    nothing. ``ctx.needs_input_grad`` says which gradients are needed.

    ``register_primitive(MyFunction)`` makes it a function of the language too.

    >>> import numpy as np
    >>> from cgprimer import Function, Value
    >>> class Truncate(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save(x - np.trunc(x))
    ...         return np.trunc(x)
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (error,) = ctx.saved
    ...         return grad + error
    >>> x = Value([3.75, 4.5])
    >>> y = Truncate.apply(x)
    >>> y.backward(np.array([2.0, 3.0]))
    >>> y.data, x.grad
    (array([3., 4.]), array([2.75, 3.5 ]))
    """

    @staticmethod
    def forward(ctx: Context, *arguments: Any) -> Any:
        """Return the result for plain numbers and arrays."""
        raise UsageError("a Function needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Context, grad: Any) -> Any:
        """Return the adjoint of each argument for the adjoint of the result."""
        raise UsageError("a Function needs a static method backward(ctx, grad)")

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        """Return the result; it is a value if an argument is one."""
        return CustomOperation(cls, arguments).apply()

    @classmethod
    def language_operation(cls, name: str) -> tuple[CustomOperation, int]:
        """Return this function as an operation of the language, and its number of arguments.

        Raises:
            UsageError: ``forward`` takes any number of arguments, or none.
        """
        kinds = [p.kind for p in inspect.signature(cls.forward).parameters.values()][1:]
        if not kinds or any(k is not inspect.Parameter.POSITIONAL_OR_KEYWORD for k in kinds):
            raise UsageError(
                f"{name}.forward must name its arguments one by one: forward(ctx, a, b)"
            )
        operation = CustomOperation(cls, (None,) * len(kinds))
        operation.name, operation.positions = name, list(range(len(kinds)))
        operation.needs_grad = (True,) * len(kinds)
        operation.context = operation.create_context()
        return operation, len(kinds)


class CustomOperation:
    """One call of a function with a custom backward pass: the function and its fixed arguments.

    The setting of a structural primitive ``custom``. The rules and the arithmetic of the core ask
    it for shapes, values and adjoints.

    Attributes:
        name: name of the function.
        arguments: all arguments; None for those that are operands.
        positions: positions of the operands among the arguments.
        is_rule: whether the rule for reverse mode can be written on a tape; here it calls Python.
    """

    is_rule = False

    def __init__(self, function: Any, arguments: Sequence[Any]) -> None:
        self.function, self.name = function, function.__name__
        self.arguments = list(arguments)
        self.positions = [i for i, a in enumerate(arguments) if isinstance(a, ValueBase)]
        self.needs_grad = tuple([getattr(a, "requires_grad", False) for a in arguments])
        self.context = self.create_context()
        self._latest: tuple[Any, list[Any]] = (None, [])  # an adjoint and those of the operands

    def create_context(self) -> Context:
        """Return an empty context that knows which arguments need a gradient."""
        omitted = max(0, _count_max_arguments(self.function.forward) - len(self.needs_grad))
        return Context(self.needs_grad + (False,) * omitted)

    def __repr__(self) -> str:
        fixed = [a for i, a in enumerate(self.arguments) if i not in self.positions]
        return f"{self.function.__module__}.{self.function.__qualname__}{fixed or ''}"

    def apply(self) -> Any:
        """Call the function; the result is a value if an argument is one."""
        operands = tuple(self.arguments[i] for i in self.positions)
        for position in self.positions:
            self.arguments[position] = None  # the result refers to its operands
        data = self.run_forward([o._data for o in operands])
        if not operands:
            return data
        requires_grad = any(o.requires_grad for o in operands)
        primitive = Custom(self)
        return EAGER.wrap_result(data, primitive, operands, requires_grad=requires_grad)

    def run_forward(self, data: Sequence[Any], context: Context | None = None) -> Any:
        """Return the result for the data of the operands; arrays are passed as read-only views."""
        arguments = list(self.arguments)
        self._views = [_make_read_only(d) for d in data]
        for position, view in zip(self.positions, self._views, strict=True):
            arguments[position] = view
        result = self.function.forward(context or self.context, *arguments)
        if isinstance(result, tuple):
            raise UsageError(
                f"{self.name}.forward must return one result, got {len(result)}",
                hint="join the results with np.stack or np.concatenate, or write a Function each",
            )
        return to_data(result)

    def run_backward(self, bar: Any, shapes: Sequence[Shape], context: Context) -> list[Any]:
        """Call ``backward`` and return the adjoint of each operand, with its shape checked."""
        result = self.function.backward(context, bar)
        gradients = result if isinstance(result, tuple) else (result,)
        self._check_gradient_count(gradients)
        adjoints = []
        for position, shape in zip(self.positions, shapes, strict=True):
            gradient = gradients[position]
            if gradient is None:
                adjoints.append(EAGER.broadcast(0.0, shape))
                continue
            gradient = gradient if isinstance(gradient, ValueBase) else to_data(gradient)
            if EAGER.shape(gradient) != shape:
                raise DifferentiationError(
                    f"{self.name}.backward returned a gradient of shape {EAGER.shape(gradient)} for"
                    f" argument {position} of forward, which has the shape {shape}"
                )
            adjoints.append(gradient)
        return adjoints

    def _check_gradient_count(self, gradients: tuple[Any, ...]) -> None:
        """Check that ``backward`` returned a gradient for each argument that was passed."""
        count = len(self.arguments)
        most = max(count, _count_max_arguments(self.function.forward))
        if not count <= len(gradients) <= most:
            raise DifferentiationError(
                f"{self.name}.backward returned {pluralize(len(gradients), 'gradient')}, but"
                f" forward has {pluralize(most, 'argument')}",
                hint="return one gradient for each argument of forward, None if it has none",
            )
        if extra := [k for k in range(count, len(gradients)) if gradients[k] is not None]:
            raise DifferentiationError(
                f"{self.name}.backward returned a gradient for argument {extra[0]} of forward,"
                " which was omitted",
                hint="return None for it: ctx.needs_input_grad says which gradients are needed",
            )

    # --- the interface for the rules and the arithmetic of the core ------------------------------

    def shape(self, *shapes: Shape) -> Shape:
        """Compute the shape of the result by calling the function with arrays of ones."""
        ones = [np.ones(shape) if shape else 1.0 for shape in shapes]
        shape: Shape = EAGER.shape(self.run_forward(ones, self.create_context()))
        return shape

    def value(self, *data: Any, ranks: Sequence[int]) -> Any:
        """Return the result for each sample; ``ranks`` are the ranks of one sample's operands."""
        return _apply_to_samples(
            lambda *sample: self.run_forward(sample, self.create_context()), data, ranks
        )

    def operand_adjoint(self, bar: Any, *data: Any, index: int, ranks: Sequence[int]) -> Any:
        """Return the adjoint of one operand for each sample.

        Args:
            bar: adjoint of the result.
            data: operands.
            which: index of the operand.
            ranks: ranks of ``bar`` and of the operands for one sample.
        """

        def compute_sample_adjoint(bar: Any, *data: Any) -> Any:
            context = self.create_context()
            self.run_forward(data, context)
            return self.run_backward(bar, [np.shape(d) for d in data], context)[index]

        return _apply_to_samples(compute_sample_adjoint, (bar, *data), ranks)

    def emit_adjoint(self, b: Any, index: int, bar: Any, values: Sequence[Any]) -> Any:
        """Return the contribution to the adjoint of one operand: the rule for reverse mode."""
        if not isinstance(b, EagerBuilder):
            ranks = tuple(len(b.shape(v)) for v in (values[-1], *values[:-1]))
            return b.emit(CustomBackward(self, index, ranks), bar, *values[:-1])
        latest_bar, adjoints = self._latest
        if latest_bar is not bar or adjoints[index] is None:
            adjoints = self.compute_operand_adjoints(bar, values)
        adjoint, adjoints[index] = adjoints[index], None  # requested once: free it
        has_more = any(a is not None for a in adjoints)
        self._latest = (bar, adjoints) if has_more else (None, [])
        return adjoint

    def compute_operand_adjoints(self, bar: Any, values: Sequence[Any]) -> list[Any]:
        """Return the adjoints of all operands; ``values`` are the operands and the result."""
        context = self.context
        nested = isinstance(values[-1], ValueBase)  # the adjoints will be differentiated again
        if nested:
            context = self._restore_context(values)
        shapes = [EAGER.shape(v) for v in values[:-1]]
        with set_recording(nested):
            return self.run_backward(bar, shapes, context)

    def _restore_context(self, values: Sequence[Any]) -> Context:
        """Return the context with recorded values instead of their data."""
        pairs = [*zip(self._views, values[:-1], strict=True)]

        def restore_value(saved: Any) -> Any:
            value = next((value for view, value in pairs if saved is view), None)
            if value is not None:
                return value
            if isinstance(saved, int | str | None) or any(saved is a for a in self.arguments):
                return saved
            raise DifferentiationError(
                f"{self.name} has no second derivative: forward saved an intermediate result, whose"
                " dependence on the arguments is not recorded",
                hint="save arguments only, and compute the rest in backward",
            )

        context = Context()
        context.__dict__ = {
            name: tuple(map(restore_value, saved)) if name == "saved" else restore_value(saved)
            for name, saved in vars(self.context).items()
            if name != "needs_input_grad"
        } | {"needs_input_grad": self.context.needs_input_grad}
        return context


def _count_max_arguments(forward: Callable[..., Any]) -> int:
    """Return the largest number of arguments of a forward pass; 0 if it is unlimited or unknown.

    >>> _count_max_arguments(lambda ctx, a, b=None: a), _count_max_arguments(lambda ctx, *a: a)
    (2, 0)
    """
    try:
        kinds = [p.kind for p in inspect.signature(forward).parameters.values()]
    except (TypeError, ValueError):  # a function written in C without a signature
        return 0
    if any(kind is inspect.Parameter.VAR_POSITIONAL for kind in kinds):
        return 0
    return sum(kind is not inspect.Parameter.KEYWORD_ONLY for kind in kinds) - 1


def _is_writable(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.flags.writeable


def _make_read_only(data: Any) -> Any:
    """Return a read-only view of an array; anything else is returned as it is."""
    if not isinstance(data, np.ndarray):
        return data
    view = data.view()
    view.flags.writeable = False
    return view


def _apply_to_samples(
    function: Callable[..., Any], data: Sequence[Any], ranks: Sequence[int]
) -> Any:
    """Apply a function to each sample; the leading axes of the data count the samples."""
    arrays = [np.asarray(d) for d in data]
    samples = max((a.shape[: a.ndim - r] for a, r in zip(arrays, ranks, strict=True)), key=len)
    if not samples:
        return np.asarray(function(*[a if a.ndim else float(a) for a in arrays]))
    expanded = [
        np.broadcast_to(
            a.reshape((1,) * (len(samples) + r - a.ndim) + a.shape), samples + a.shape[a.ndim - r :]
        )
        for a, r in zip(arrays, ranks, strict=True)
    ]
    results = []
    for index in np.ndindex(*samples):
        sample = [a[index] for a in expanded]
        results.append(np.asarray(function(*[a if a.ndim else float(a) for a in sample])))
    return np.stack(results).reshape(samples + results[0].shape)
