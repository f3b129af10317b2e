"""What an update rule is; recorded on a tape, engines run it in their own code.

The state is a tuple of arrays of the parameters' shape (and for Adam the number of steps), so a
checkpoint can hold it and a lecture can print it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from cgprimer.backends.interfaces import UpdateRule
from cgprimer.core.operations import find_primitive, numpy_arithmetic
from cgprimer.errors import TapeError, UsageError
from cgprimer.expressions import Expression, Name, Number, fold
from cgprimer.support.validation import check_named_values
from cgprimer.support.value_names import internal_name
from cgprimer.tapes import Builder, values_of

Array = Any
PARAMETER, GRADIENT, RATE = "update.parameter", "update.gradient", "update.rate"
State = tuple[Array, ...]
Update = Callable[..., tuple[Array, State]]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An update rule.

    Attributes:
        name: what it is called.
        update: ``(parameters, gradient, state, rate) -> (parameters, state)``; it changes none
            of the arrays that it is given. Arguments behind these, with defaults, are its
            hyperparameters.
        start: parameters to the state before the first step; none unless given.
        rate: a learning rate that is a fair first try; unit: that of a parameter for rules that
            divide by the size of the gradient, of a parameter squared over the loss for the others.
        ranges: where hyperparameters lie, ends included; those not named are any finite numbers.
        kind: ``rule``; ``coordinates`` for one that differentiates some parameters at each step,
            ``whole`` for one that does all steps by itself.
    """

    name: str
    update: Update
    start: Callable[[Array], State] = lambda parameters: ()
    rate: float = 0.01
    ranges: Mapping[str, Range] = field(default_factory=dict, hash=False, compare=False)
    kind: str = "rule"

    @property
    def hyper(self) -> dict[str, float]:
        """The hyperparameters and their values.

        >>> Optimizer("sgd", lambda p, g, state, rate, mu=0.5: (p - rate*g, state)).hyper
        {'mu': 0.5}
        """
        return dict(_defaults(self.update))

    def but(self, given: Mapping[str, Any]) -> Optimizer:
        """The same with other hyperparameters.

        Raises:
            UsageError: there is none of a name, or a value lies outside of its range.

        >>> rule = Optimizer("one", lambda p, g, state, rate, mu=0.5: (p, state))
        >>> rule.but({"mu": 0.25}).hyper
        {'mu': 0.25}
        """
        hyper = check_named_values(f"{self.name}", given, "hyperparameter", self.hyper)
        for name, value in hyper.items():
            low, high = self.ranges.get(name, (value, value))
            if not low <= value <= high:
                where = f"at least {low:g}" + (" and less than 1" if high < 1 else "")
                raise UsageError(f"{name} of {self.name} must be {where}, not {value:g}")
        return replace(self, update=_with(self.update, tuple(hyper.items()))) if hyper else self


@lru_cache(maxsize=64)  # a signature takes 20 us, and a run asks three times
def _defaults(update: Update) -> dict[str, float]:
    known = inspect.signature(update).parameters.values()
    return {one.name: one.default for one in known if one.default is not one.empty}


@cache  # equal rules are equal: they are recorded once
def _with(update: Update, hyper: tuple[tuple[str, float], ...]) -> Update:
    return partial(update, **dict(hyper))


_GRADIENT, _RATE = np.array([-3.0, 0.25, 1.5]), 0.25  # with which an update is tried


def tried(rule: Optimizer) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Parameters and the parts of the state before and after the second step from some values."""
    start = np.array([0.5, -2.0, 0.0])
    try:
        points = [(start, *rule.start(start))]
        for _ in range(2):
            with np.errstate(all="ignore"):
                moved, state = rule.update(points[-1][0], _GRADIENT, points[-1][1:], _RATE)
            points.append((moved, *state))
        shapes = [[np.shape(part) for part in point] for point in points]
        if any(shape not in ((), (3,)) for shape in shapes[0]):
            raise ValueError("a part of the state is a number, or has the parameters' shape")
        if shapes[0] != shapes[1] or shapes[1] != shapes[2]:
            raise ValueError("parameters and state must keep their shapes")
    except Exception as error:
        what = f"the optimizer {rule.name!r} fails on an array of three parameters"
        raise UsageError(
            f"{what}: {type(error).__name__}: {error}",
            hint="update(parameters, gradient, state, rate) gives (parameters, state);"
            " start(parameters) gives the first state",
        ) from error
    return points[1], points[2]


# --- an update as a tape: called once with numbers that record, it leaves one behind -------------

_FUNCTIONS = {  # numpy's names of primitives that are called otherwise here, beside arcsin and kin
    "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "power": "pow",
    "float_power": "pow", "absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min",
}  # fmt: skip


class Recorded(NDArrayOperatorsMixin):
    """A value of a tape that is being built; arithmetic on it makes further ones.

    So do numpy's functions of a number, such as ``np.sqrt``, ``np.sign`` and ``np.maximum``. What
    would have to look at a value (an ``if``) or at others beside it (a sum over the parameters)
    raises TapeError: it cannot be recorded.

    >>> builder = Builder()
    >>> x = Recorded(builder, builder.column("x"))
    >>> y = 2*x - x/(1 + x)
    >>> print(builder.finish({"y": y.index}))
    input     x
    v1 = 2*x
    v2 = 1 + x
    v3 = x/v2
    v4 = v1 - v3
    output    y = v4
    """

    def __init__(self, builder: Builder, index: int) -> None:
        self.builder = builder
        self.index = index

    def __array_ufunc__(self, function: Any, way: str, *given: Any, **options: Any) -> Recorded:
        """Operators, and numpy's functions of arrays, a value at a time."""
        name = function.__name__
        if name == "square":
            return self * self  # type: ignore[no-any-return]
        if name == "greater":
            name, given = "less", given[::-1]
        known = _FUNCTIONS.get(name, name.replace("arc", "a"))
        row = find_primitive(known) if way == "__call__" and not options else None
        if row is None or row.arity != len(given):
            raise TapeError(f"numpy's {name} cannot be recorded")
        return applied(row.name, *given)  # type: ignore[no-any-return]

    def __array_function__(self, function: Any, kinds: Any, given: Any, options: Any) -> Recorded:
        """numpy's choice between two numbers; nothing else of what is made for whole arrays."""
        if function is not np.where or len(given) != 3 or options:
            self._looked_at()
        return applied("where", *given)  # type: ignore[no-any-return]

    def _looked_at(self, *_: object, **__: object) -> NoReturn:
        raise TapeError("what looks at values, or at several at once, cannot be recorded")

    __bool__ = __float__ = __int__ = __index__ = __array__ = _looked_at


def applied(name: str, *operands: Any) -> Any:
    """A primitive of the table applied to arrays and numbers, or to values being recorded."""
    builder = next((o.builder for o in operands if isinstance(o, Recorded)), None)
    if builder is None:
        with np.errstate(all="ignore"):
            return numpy_arithmetic.numpy_function(name)(*operands)
    places = [o.index if isinstance(o, Recorded) else builder.constant(float(o)) for o in operands]
    return Recorded(builder, builder.emit(name, *places))


def evaluated(tree: Expression, known: Mapping[str, Any]) -> Any:
    """An expression where names have values: arrays and numbers, or values being recorded."""

    def leaf(node: Name | Number) -> Any:
        return known[node.name] if isinstance(node, Name) else node.value

    return fold(tree, leaf, lambda name, operands: applied(name, *operands))


@cache
def update_rule(rule: Optimizer) -> UpdateRule:
    """The update rule as a tape over the parameters, for engines that train by themselves.

    Its columns have a value per parameter, its scalars one for all. Each part of the state is
    there before (``update.state.0``) and, as an output, after (``new.update.state.0``).

    Raises:
        UsageError: the update fails.
        TapeError: it cannot be recorded.

    >>> from cgprimer.training.optimizers import optimizer
    >>> print(update_rule(optimizer("momentum")).tape)
    input     update_parameter
    input     update_gradient
    input     update_state_0
    parameter update_rate
    v1 = 0.9*update_state_0
    v2 = v1 + update_gradient
    v3 = update_rate*v2
    v4 = update_parameter - v3
    output    new_update_parameter = v4
    output    new_update_state_0 = v2
    """
    before, after = tried(rule)
    names = [PARAMETER, *(f"update.state.{k}" for k in range(len(before) - 1))]
    point = {PARAMETER: before[0], GRADIENT: _GRADIENT, RATE: _RATE}
    point |= dict(zip(names, before, strict=True))
    columns = tuple(name for name, part in point.items() if np.ndim(part))
    scalars = tuple(name for name in point if name not in columns)
    builder = Builder()
    value: dict[str, Any] = {name: Recorded(builder, builder.column(name)) for name in columns}
    value |= {name: Recorded(builder, builder.scalar(name)) for name in scalars}
    try:
        state = tuple(value[name] for name in names[1:])
        made, state = rule.update(value[PARAMETER], value[GRADIENT], state, value[RATE])
        outputs = {}
        for name, part in zip(names, (made, *state), strict=True):
            known = isinstance(part, Recorded)
            outputs[internal_name("new", name)] = (
                part.index if known else builder.constant(float(part))
            )
        tape = builder.finish(outputs)
        found = values_of(tape, point)
        for index, expected in zip(tape.outputs.values(), after, strict=True):
            if not np.allclose(found[index], expected, rtol=1e-9, equal_nan=True):
                raise TapeError("its steps are more than arithmetic")  # a sum, well hidden
    except Exception as error:
        raise TapeError(f"the optimizer {rule.name!r} cannot be recorded: {error}") from error
    parts = [name for name in (*columns, *scalars) if name in names]
    return UpdateRule(
        rule.name, tape, columns, scalars, tuple(internal_name("new", name) for name in parts)
    )
