"""Functions with a custom backward pass, after the interface of ``torch.autograd.Function``.

A recorded call is one operation, ``custom``, whose reverse-mode rule calls the function's
``backward``. On a tape the rule is an instruction, ``backward``, which runs the forward pass again
to fill the context.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.operations.custom_operations import CustomBackwardCall, CustomCall
from cgprimer.errors import DifferentiationError, UsageError, pluralize
from cgprimer.recording.data_conversion import to_data
from cgprimer.recording.eager_builder import EAGER, EagerBuilder
from cgprimer.recording.recording_state import set_recording
from cgprimer.recording.value_base import ValueBase


class Context:
    """Values that the forward pass of a :class:`Function` saves for its backward pass.

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
        """Compute the result from plain scalars and arrays; subclasses override this method."""
        raise UsageError("a subclass of Function must define a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Context, grad: Any) -> Any:
        """Return the gradient of each argument, given the gradient of the result."""
        raise UsageError("a subclass of Function must define a static method backward(ctx, grad)")

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        """Call the function; the result is a ``Value`` if any argument is a ``Value``."""
        return CustomOperation(cls, arguments).apply()

    @classmethod
    def create_language_operation(cls, name: str) -> tuple[CustomOperation, int]:
        """Return this function as an operation of the expression language, and its arity.

        Raises:
            UsageError: ``forward`` accepts ``*args``, or no arguments.
        """
        kinds = [p.kind for p in inspect.signature(cls.forward).parameters.values()][1:]
        if not kinds or any(k is not inspect.Parameter.POSITIONAL_OR_KEYWORD for k in kinds):
            raise UsageError(
                f"{name}.forward must have named positional arguments, as in forward(ctx, a, b)"
            )
        operation = CustomOperation(cls, (None,) * len(kinds))
        operation.name, operation.positions = name, list(range(len(kinds)))
        operation.needs_grad = (True,) * len(kinds)
        operation.context = operation.create_context()
        return operation, len(kinds)


class CustomOperation:
    """One call to a :class:`Function`: the function and its arguments that are not values.

    The core's operation ``custom`` asks this object for shapes, values and adjoints.

    Attributes:
        name: name of the function.
        arguments: all arguments; None for arguments that are operands.
        positions: positions of the operands among the arguments.
        is_rule: False, because the reverse-mode rule calls Python code.
    """

    is_rule = False

    def __init__(self, function: Any, arguments: Sequence[Any]) -> None:
        self.function, self.name = function, function.__name__
        self.arguments = list(arguments)
        self.positions = [i for i, a in enumerate(arguments) if isinstance(a, ValueBase)]
        self.needs_grad = tuple([getattr(a, "requires_grad", False) for a in arguments])
        self.context = self.create_context()
        self._latest: tuple[Any, list[Any]] = (
            None,
            [],
        )  # adjoints of the result and of the operands

    def create_context(self) -> Context:
        """Return an empty context with ``needs_input_grad`` set."""
        omitted = max(0, _count_max_arguments(self.function.forward) - len(self.needs_grad))
        return Context(self.needs_grad + (False,) * omitted)

    def __repr__(self) -> str:
        fixed = [a for i, a in enumerate(self.arguments) if i not in self.positions]
        return f"{self.function.__module__}.{self.function.__qualname__}{fixed or ''}"

    def apply(self) -> Any:
        """Call the function and record the call if any argument is a ``Value``."""
        operands = tuple(self.arguments[i] for i in self.positions)
        for position in self.positions:
            self.arguments[position] = None  # the result refers to its operands
        data = self.run_forward([o._data for o in operands])
        if not operands:
            return data
        requires_grad = any(o.requires_grad for o in operands)
        primitive = CustomCall(self)
        return EAGER.wrap_result(data, primitive, operands, requires_grad=requires_grad)

    def run_forward(self, data: Sequence[Any], context: Context | None = None) -> Any:
        """Call ``forward`` with the data of the operands, arrays as read-only views."""
        arguments = list(self.arguments)
        self._views = [_make_read_only(d) for d in data]
        for position, view in zip(self.positions, self._views, strict=True):
            arguments[position] = view
        result = self.function.forward(context or self.context, *arguments)
        if isinstance(result, tuple):
            raise UsageError(
                f"{self.name}.forward must return a single result, got a tuple of {len(result)}",
                hint="join the results with np.stack or np.concatenate, or define one Function per"
                " result",
            )
        return to_data(result)

    def run_backward(self, adjoint: Any, shapes: Sequence[Shape], context: Context) -> list[Any]:
        """Call ``backward``, check the shapes, and return the adjoint of each operand."""
        result = self.function.backward(context, adjoint)
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
                    f"{self.name}.backward must return a gradient of shape {shape} for argument"
                    f" {position} of forward, got shape {EAGER.shape(gradient)}"
                )
            adjoints.append(gradient)
        return adjoints

    def _check_gradient_count(self, gradients: tuple[Any, ...]) -> None:
        """Check that ``backward`` returned one gradient per argument of ``forward``."""
        count = len(self.arguments)
        most = max(count, _count_max_arguments(self.function.forward))
        if not count <= len(gradients) <= most:
            raise DifferentiationError(
                f"{self.name}.backward must return {pluralize(most, 'gradient')}, one per argument"
                f" of forward, got {len(gradients)}",
                hint="return None for arguments that need no gradient",
            )
        if extra := [k for k in range(count, len(gradients)) if gradients[k] is not None]:
            raise DifferentiationError(
                f"{self.name}.backward must return None for argument {extra[0]} of forward, which"
                " was omitted in the call",
                hint="check ctx.needs_input_grad, which is False for omitted arguments",
            )

    # --- interface of the core's operation ``custom`` ---------------------------------------------

    def shape(self, *shapes: Shape) -> Shape:
        """Infer the shape of the result by calling ``forward`` with arrays of ones."""
        ones = [np.ones(shape) if shape else 1.0 for shape in shapes]
        shape: Shape = EAGER.shape(self.run_forward(ones, self.create_context()))
        return shape

    def evaluate(self, *data: Any, ranks: Sequence[int]) -> Any:
        """Call ``forward`` on each sample; ``ranks`` are the operand ranks of one sample."""
        return _apply_to_samples(
            lambda *sample: self.run_forward(sample, self.create_context()), data, ranks
        )

    def compute_operand_adjoint(
        self, adjoint: Any, *data: Any, index: int, ranks: Sequence[int]
    ) -> Any:
        """Compute the adjoint of one operand for each sample.

        Args:
            adjoint: adjoint of the result.
            data: operands.
            index: index of the operand.
            ranks: ranks of ``adjoint`` and of the operands for one sample.
        """

        def compute_sample_adjoint(adjoint: Any, *data: Any) -> Any:
            """Run both passes for one sample and return the adjoint of the operand."""
            context = self.create_context()
            self.run_forward(data, context)
            return self.run_backward(adjoint, [np.shape(d) for d in data], context)[index]

        return _apply_to_samples(compute_sample_adjoint, (adjoint, *data), ranks)

    def emit_adjoint(self, builder: Any, index: int, adjoint: Any, values: Sequence[Any]) -> Any:
        """Emit the contribution to the adjoint of one operand (the reverse-mode rule)."""
        if not isinstance(builder, EagerBuilder):
            ranks = tuple(len(builder.shape(v)) for v in (values[-1], *values[:-1]))
            return builder.emit(CustomBackwardCall(self, index, ranks), adjoint, *values[:-1])
        latest_adjoint, adjoints = self._latest
        if latest_adjoint is not adjoint or adjoints[index] is None:
            adjoints = self.compute_operand_adjoints(adjoint, values)
        result, adjoints[index] = adjoints[index], None  # each adjoint is requested once
        has_more = any(a is not None for a in adjoints)
        self._latest = (adjoint, adjoints) if has_more else (None, [])
        return result

    def compute_operand_adjoints(self, adjoint: Any, values: Sequence[Any]) -> list[Any]:
        """Compute the adjoints of all operands; ``values`` are the operands and the result."""
        context = self.context
        nested = isinstance(values[-1], ValueBase)  # the adjoints will be differentiated again
        if nested:
            context = self._restore_context(values)
        shapes = [EAGER.shape(v) for v in values[:-1]]
        with set_recording(nested):
            return self.run_backward(adjoint, shapes, context)

    def _restore_context(self, values: Sequence[Any]) -> Context:
        """Return the context with recorded values in place of the saved arguments."""
        pairs = [*zip(self._views, values[:-1], strict=True)]

        def restore_value(saved: Any) -> Any:
            """Return the recorded value that corresponds to a saved argument."""
            value = next((value for view, value in pairs if saved is view), None)
            if value is not None:
                return value
            if isinstance(saved, int | str | None) or any(saved is a for a in self.arguments):
                return saved
            raise DifferentiationError(
                f"cannot differentiate {self.name}.backward: forward saved an intermediate result,"
                " whose dependence on the arguments is not recorded",
                hint="save only arguments of forward, and recompute intermediate results in"
                " backward",
            )

        context = Context()
        context.__dict__ = {
            name: tuple(map(restore_value, saved)) if name == "saved" else restore_value(saved)
            for name, saved in vars(self.context).items()
            if name != "needs_input_grad"
        } | {"needs_input_grad": self.context.needs_input_grad}
        return context


def _count_max_arguments(forward: Callable[..., Any]) -> int:
    """Return the maximum number of arguments of ``forward``; 0 if unlimited or unknown.

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
    """Return whether the data is a writable array."""
    return isinstance(data, np.ndarray) and data.flags.writeable


def _make_read_only(data: Any) -> Any:
    """Return a read-only view of an array; return other data unchanged."""
    if not isinstance(data, np.ndarray):
        return data
    view = data.view()
    view.flags.writeable = False
    return view


def _apply_to_samples(
    function: Callable[..., Any], data: Sequence[Any], ranks: Sequence[int]
) -> Any:
    """Apply a function to each sample and stack the results; samples are leading axes."""
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
