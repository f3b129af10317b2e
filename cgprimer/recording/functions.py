"""Functions with a backward pass of their own, and those that are computed again in it.

Both are one structural primitive, ``custom``, whose rule for reverse mode asks the function. On a
tape the rule is an instruction, ``backward``, which runs the forward pass again for its context.

Source: the interface of PyTorch's ``torch.autograd.Function`` and ``torch.utils.checkpoint``;
Griewank and Walther, "Evaluating Derivatives", 2nd ed., chapter 12.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np

from cgprimer.core.language.syntax import Shape, Structural
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.recording.backward import adjoints, between
from cgprimer.recording.eager import EAGER, Eager, Recorded, State, recording, serial
from cgprimer.recording.operators import as_data
from cgprimer.recording.value import Value


class Context:
    """What a forward pass leaves for the backward pass: ``ctx.save(...)``, then ``ctx.saved``.

    Attributes:
        saved: the values that were saved.
        needs_input_grad: for each argument of ``forward`` whether its gradient is needed;
            ``backward`` may return None for the others.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...] = ()) -> None:
        self.saved: tuple[Any, ...] = ()
        self.needs_input_grad = needs_input_grad

    def save(self, *values: Any) -> None:
        """Keep values; :attr:`saved` is the tuple of them, as they are now."""
        self.saved = tuple([v.copy() if _is_open(v) else v for v in values])

    save_for_backward = save  # as PyTorch calls them
    saved_tensors = property(lambda self: self.saved)


class Function:
    """A function with its own backward pass, which need not be its derivative.

    Write two static methods. ``forward(ctx, ...)`` gets plain numbers and arrays, which it must
    not write into, and returns one; ``backward(ctx, grad)`` gets the adjoint of the result and
    returns that of each argument of ``forward``, None for what has none. Arguments with a default
    may be left out; ``backward`` returns None for them or leaves them out as well.
    ``ctx.needs_input_grad`` says which gradients are needed.

    ``register_primitive(MyFunction)`` makes it a function of the language, too.

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
        """The result for plain numbers and arrays."""
        raise UsageError("a Function needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Context, grad: Any) -> Any:
        """The adjoint of each argument, for that of the result."""
        raise UsageError("a Function needs a static method backward(ctx, grad)")

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        """The result; a value that is differentiated with ``backward`` where an argument is one."""
        return Custom(cls, arguments).apply()


class Custom:
    """What a structural primitive ``custom`` holds: a function, and arguments that are fixed.

    The primitive's rules (:mod:`cgprimer.core.primitives.shaped`) and arithmetic ask it for
    shapes, values and adjoints.
    """

    is_rule = False  # it runs a function of Python's

    def __init__(self, function: Any, arguments: Sequence[Any]) -> None:
        self.function, self.name = function, function.__name__
        self.arguments = list(arguments)
        self.places = [i for i, a in enumerate(arguments) if isinstance(a, Recorded)]
        self.operands: tuple[Any, ...] = tuple(arguments[i] for i in self.places)
        self.needs = tuple([getattr(a, "requires_grad", False) for a in arguments])
        self.context = self.new_context()
        self._found: tuple[Any, list[Any]] = (None, [])  # an adjoint, and what it led to

    def new_context(self) -> Context:
        """Return an empty context that knows which arguments need a gradient."""
        left_out = max(0, _most_arguments(self.function.forward) - len(self.needs))
        return Context(self.needs + (False,) * left_out)

    def __repr__(self) -> str:
        fixed = [a for i, a in enumerate(self.arguments) if i not in self.places]
        return f"{self.function.__module__}.{self.function.__qualname__}{fixed or ''}"

    def apply(self) -> Any:
        """The result; a value where an operand is one."""
        operands, self.operands = self.operands, ()  # the value has them
        for place, operand in zip(self.places, operands, strict=True):
            operand.look()
            self.arguments[place] = None
        data = self.forward([o._data for o in operands])
        wanted = any(o.requires_grad for o in operands)
        if not operands:
            return data
        return EAGER.result(data, Structural("custom", self), operands, wanted=wanted)

    def forward(self, data: Sequence[Any], context: Context | None = None) -> Any:
        """The result for the operands' numbers; arrays are given so that none is written into."""
        full = list(self.arguments)
        given = [_read_only(d) for d in data]
        for place, one in zip(self.places, given, strict=True):
            full[place] = one
        self.given = given
        made = self.function.forward(context or self.context, *full)
        if isinstance(made, tuple):
            raise UsageError(
                f"{self.name}.forward returned {len(made)} results, and a Function has one",
                hint="np.stack or np.concatenate makes one of them; or write a Function for each",
            )
        return as_data(made)

    def adjoints(self, bar: Any, shapes: Sequence[Shape], context: Context) -> list[Any]:
        """The adjoint of each operand, checked."""
        found = self.function.backward(context, bar)
        parts = found if isinstance(found, tuple) else (found,)
        count = len(self.arguments)
        most = max(count, _most_arguments(self.function.forward))
        if not count <= len(parts) <= most:
            raise DifferentiationError(
                f"{self.name}.backward returned {len(parts)} gradients, and forward has {most}"
                " arguments",
                hint="one for each argument of forward, None where there is none",
            )
        if extra := [k for k in range(count, len(parts)) if parts[k] is not None]:
            raise DifferentiationError(
                f"{self.name}.backward returned a gradient for argument {extra[0]} of forward,"
                " which was left out",
                hint="return None for it: ctx.needs_input_grad says which gradients are needed",
            )
        made = []
        for place, shape in zip(self.places, shapes, strict=True):
            part = parts[place]
            if part is None:
                made.append(EAGER.broadcast(0.0, shape))
                continue
            part = part if isinstance(part, Recorded) else as_data(part)
            if EAGER.shape(part) != shape:
                raise DifferentiationError(
                    f"{self.name}.backward returned a gradient of shape {EAGER.shape(part)} for"
                    f" argument {place} of forward, which has the shape {shape}"
                )
            made.append(part)
        return made

    # --- what the primitive's rules ask for ------------------------------------------------------

    def shape(self, *shapes: Shape) -> Shape:
        """The shape of the result: that of what it makes of ones."""
        found: Shape = EAGER.shape(
            self.forward([np.ones(s) if s else 1.0 for s in shapes], self.new_context())
        )
        return found

    def value(self, *data: Any, ranks: Sequence[int]) -> Any:
        """The result for each sample; ranks are the numbers of axes for one sample."""
        return _each(lambda *one: self.forward(one, self.new_context()), data, ranks)

    def bar(self, bar: Any, *data: Any, which: int, ranks: Sequence[int]) -> Any:
        """The adjoint of an operand for each sample; the result's comes first in ``ranks``."""

        def one(bar: Any, *data: Any) -> Any:
            context = self.new_context()
            self.forward(data, context)
            return self.adjoints(bar, [np.shape(d) for d in data], context)[which]

        return _each(one, (bar, *data), ranks)

    def pull(self, b: Any, name: Structural, which: int, bar: Any, values: Sequence[Any]) -> Any:
        """The rule for reverse mode: what is handed to an operand."""
        if not isinstance(b, Eager):
            ranks = tuple(len(b.shape(v)) for v in (values[-1], *values[:-1]))
            return b.emit(Structural("backward", self, which, ranks), bar, *values[:-1])
        known, left = self._found
        if known is not bar or left[which] is None:
            left = self.all_adjoints(bar, values)
        part, left[which] = left[which], None  # let go of: nobody asks for it a second time
        self._found = (bar, left) if any(p is not None for p in left) else (None, [])
        return part

    def all_adjoints(self, bar: Any, values: Sequence[Any]) -> list[Any]:
        """The adjoints of all operands."""
        context = self.context
        nested = isinstance(values[-1], Recorded)  # to be differentiated again
        if nested:
            context = self._with_values(values)
        shapes = [EAGER.shape(v) for v in values[:-1]]
        with recording(nested):
            return self.adjoints(bar, shapes, context)

    def _with_values(self, values: Sequence[Any]) -> Context:
        """The context with values in the place of their numbers."""
        own = [*zip(self.given, values[:-1], strict=True)]

        def exchanged(kept: Any) -> Any:
            found = next((v for d, v in own if d is kept), None)
            fixed = isinstance(kept, int | str | None) or any(kept is a for a in self.arguments)
            if found is None and not fixed:
                raise DifferentiationError(
                    f"{self.name} saved what is none of its arguments: how that changes with them"
                    " is not known, so there is no second derivative",
                    hint="save arguments only, and compute the rest in backward",
                )
            return kept if found is None else found

        context = Context()
        context.__dict__ = {
            name: tuple(map(exchanged, kept)) if name == "saved" else exchanged(kept)
            for name, kept in vars(self.context).items()
            if name != "needs_input_grad"
        } | {"needs_input_grad": self.context.needs_input_grad}
        return context


class _Again(Custom):
    """A function that is run a second time for the backward pass, instead of being recorded."""

    def __init__(self, function: Any, arguments: Any, operands: tuple[Any, ...], out: Any) -> None:
        self.function, self.name = function, getattr(function.func, "__name__", "function")
        self.arguments, self.places, self.operands, self.out = arguments, [], operands, out
        self._found = (None, [])

    def __repr__(self) -> str:
        return f"{self.name} {id(self)}"  # each is its own; arguments would be written out

    def all_adjoints(self, bar: Any, values: Sequence[Any]) -> list[Any]:
        """Run it, recorded, and sweep back as far as to what was there before."""
        with recording(True):
            start = serial()
            result: Any = self.function(*self.arguments)
            same = result._data == self.out  # nan aside, which is the slower question
            if not np.all(same) and not np.array_equal(result._data, self.out, equal_nan=True):
                raise DifferentiationError(
                    f"{self.name} gave other numbers when it was run again for the backward pass",
                    hint="checkpoint(f) needs a function of its arguments alone, without chance",
                )
            nested = isinstance(values[-1], Recorded)
            found = adjoints(result, bar, create_graph=nested, since=start)
        return [found[o] if o in found else np.zeros_like(o._data) for o in self.operands]


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that keeps its result alone, and is run again when the backward pass needs more.

    Memory against time: what it computes on the way is not kept. Arguments and whatever else it
    uses may be values; what it returns is one value.

    Raises:
        UsageError: it is no function, or returns something else.
        DifferentiationError: in the backward pass, where it gives other numbers than before.

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
        raise UsageError(f"checkpoint(f) wraps a function, not {function!r}")

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        start, run = serial(), partial(function, **options)
        result = run(*arguments)
        here = State.here
        if not here.recording or here.with_lines:  # nothing, or all that is done, is to be shown
            return result
        if isinstance(result, float | np.ndarray | np.generic):  # of plain numbers
            return result
        if not isinstance(result, Value):
            raise UsageError(
                f"checkpoint(f) is for functions that return one value, not {type(result).__name__}"
            )
        if not result.requires_grad or result.serial <= start:
            return result
        before = tuple(between(result, start))
        again = _Again(run, arguments, before, result._data)
        return EAGER.noted(result._data, Structural("custom", again), before)

    return called


def language_function(function: type[Function], name: str) -> tuple[Custom, int]:
    """A function as the language has it, and the number of its arguments.

    Raises:
        UsageError: ``forward`` takes any number of arguments, or none.
    """
    kinds = [p.kind for p in inspect.signature(function.forward).parameters.values()][1:]
    if not kinds or any(k is not inspect.Parameter.POSITIONAL_OR_KEYWORD for k in kinds):
        raise UsageError(f"{name}.forward must say which arguments it takes: forward(ctx, a, b)")
    custom = Custom(function, (None,) * len(kinds))
    custom.name, custom.places = name, list(range(len(kinds)))
    custom.needs = (True,) * len(kinds)
    custom.context = custom.new_context()
    return custom, len(kinds)


def _most_arguments(forward: Callable[..., Any]) -> int:
    """Return how many arguments a forward pass can have; 0 if there is no limit to check.

    >>> _most_arguments(lambda ctx, a, b=None: a), _most_arguments(lambda ctx, *a: a)
    (2, 0)
    """
    try:
        kinds = [p.kind for p in inspect.signature(forward).parameters.values()]
    except (TypeError, ValueError):  # a function of C without a signature
        return 0
    if any(kind is inspect.Parameter.VAR_POSITIONAL for kind in kinds):
        return 0
    return sum(kind is not inspect.Parameter.KEYWORD_ONLY for kind in kinds) - 1


def _is_open(data: Any) -> bool:
    """Whether it is an array that somebody might write into."""
    return isinstance(data, np.ndarray) and data.flags.writeable


def _read_only(data: Any) -> Any:
    if not isinstance(data, np.ndarray):
        return data
    view = data.view()
    view.flags.writeable = False
    return view


def _each(function: Callable[..., Any], data: Sequence[Any], ranks: Sequence[int]) -> Any:
    """A function of one sample for each of them: samples are the leading axes."""
    arrays = [np.asarray(d) for d in data]
    samples = max((a.shape[: a.ndim - r] for a, r in zip(arrays, ranks, strict=True)), key=len)
    if not samples:
        return np.asarray(function(*[a if a.ndim else float(a) for a in arrays]))
    whole = [
        np.broadcast_to(
            a.reshape((1,) * (len(samples) + r - a.ndim) + a.shape), samples + a.shape[a.ndim - r :]
        )
        for a, r in zip(arrays, ranks, strict=True)
    ]
    each = ([a[at] for a in whole] for at in np.ndindex(*samples))
    made = [np.asarray(function(*[a if a.ndim else float(a) for a in one])) for one in each]
    return np.stack(made).reshape(samples + made[0].shape)
