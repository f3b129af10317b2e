"""The backward pass: reverse mode's sweep over what was recorded, from the last to the first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from threading import RLock
from typing import Any

import numpy as np

from cgprimer.core.language.syntax import Structural
from cgprimer.core.methods.reverse import Step, sweep
from cgprimer.core.primitives import floats, primitive
from cgprimer.core.primitives.registry import FUNCTIONS
from cgprimer.core.tape.lowering import emit_partial
from cgprimer.errors import DifferentiationError
from cgprimer.garbage_collection import collector_paused
from cgprimer.recording.eager import EAGER, Known, Recorded, State, called, quiet
from cgprimer.recording.passes import kept_pass, recent_pass

_UNREACHED = -0.0  # no adjoint so far: what is added to it stays what it is, a -0 too


def adjoints(
    of: Recorded, gradient: Any = None, *, create_graph: bool = False, since: int = 0
) -> dict[Recorded, Any]:
    """The adjoint of every value that ``of`` was computed from and that requires one.

    Args:
        of: where to begin.
        gradient: its adjoint; 1 for a number.
        create_graph: record the pass itself, so that adjoints can be differentiated.
        since: the serial before which values count as leaves.

    Raises:
        DifferentiationError: as :meth:`Value.backward`.
    """
    seed, found = seed_of(of, gradient), dict[Recorded, Any]()
    with _marked(of, since) as order:
        if _checked(order, since, recording=create_graph):
            _sweep_of_floats(order, seed, found=found)
            return found
    found[of] = seed
    inner = [_step(v, create_graph) for v in order if v.serial > since]
    with quiet():
        sweep(EAGER, inner, found)
    return found


def between(of: Recorded, since: int) -> list[Recorded]:
    """What a value was computed from that was there before a serial, and requires a gradient."""
    with _marked(of, since) as order:
        for value in order:
            value._bar = None
    return [value for value in order if value.serial <= since]


def accumulate(of: Recorded, gradient: Any, *, free: bool) -> None:
    """Add the adjoints of leaves to their ``_grad``; of numbers on the way, too.

    Args:
        of, gradient: as in :func:`adjoints`.
        free: let go of the graph, and of each array as soon as the pass is behind it.
    """
    seeded = gradient is not None
    kept, places = recent_pass(of, seeded=seeded)
    if kept is not None:
        seed = seed_of(of, gradient) if seeded else 1.0
        for value in places[: kept.boxed]:
            if value._mark is not None:
                value.look()
        if State.changed > places[kept.inner[-1]].serial:
            _check_changes(places[: kept.most], 0)
    else:
        seed = seed_of(of, gradient)
        with collector_paused(), _marked(of) as order:
            if _checked(order):
                _sweep_of_floats(order, seed, free=free)
                return
        with quiet():
            kept, places = kept_pass(order, seeded=seeded)
    if kept is not None:
        found = kept(places, seed)
        for place in kept.inner:
            value = places[place]
            if value._data.__class__ is float:
                _leave(value, found, free=free)
            elif free:
                value.primitive, value.operands = _FREED[value.primitive], ()
    else:
        found = {of: seed}
        order.reverse()
        with quiet():
            sweep(EAGER, _passing(order, found, free=free), found)
    del seed
    with _ONE:
        while found:  # leaves are left
            leaf, bar = found.popitem()
            if isinstance(bar, Recorded):
                bar = bar._data
            kind = getattr(leaf._data, "dtype", None)
            if kind is None:
                bar = float(bar)
            elif getattr(bar, "dtype", None) != kind:  # a float where doubles were summed
                bar = np.asarray(bar, kind)
            if leaf._grad is not None:
                leaf._grad = leaf._grad + bar
                leaf._again += 1
            elif type(bar) is float or (sys.getrefcount(bar) == 2 and bar.base is None):
                leaf._grad = bar
            else:  # somebody else has it
                leaf._grad = np.array(bar)


def _passing(order: list[Recorded], found: dict[Recorded, Any], *, free: bool) -> Iterator[Step]:
    """The steps, from the last on; what is behind the pass is not held any longer."""
    while order:
        value = order.pop()
        if value.primitive:
            yield _step(value, as_values=False)
            _leave(value, found, free=free)


def _leave(value: Recorded, found: dict[Recorded, Any], *, free: bool) -> None:
    """What remains when the pass has gone through a value: numbers keep their adjoint."""
    if not value.primitive:
        return
    bar = found.pop(value, None)
    if bar is not None and type(value._data) is float:
        value._again += value._grad is not None
        value._grad = float(bar) + (value._grad or 0.0)
    if free:
        value.primitive, value.operands = _FREED[value.primitive], ()


def seed_of(of: Recorded, gradient: Any) -> Any:
    """The adjoint to begin with."""
    if not of.requires_grad:
        raise DifferentiationError(
            "nothing that this value was computed from requires a gradient",
            hint="make the values to differentiate by with Value(..., requires_grad=True); under"
            " no_grad(), w -= step changes w, but w = w - step makes a value that requires none",
        )
    shape = EAGER.shape(of)
    if gradient is None:
        if shape:
            raise DifferentiationError(
                "gradients are created implicitly for scalars only, and this value has the"
                f" shape {shape}",
                hint="sum it up, or give the adjoint to begin with: backward(np.ones(value.shape))",
            )
        return 1.0 if type(of._data) is float else of._data.dtype.type(1.0)
    if EAGER.shape(gradient) != shape:
        raise DifferentiationError(
            f"the gradient must have the shape of the value, {shape}, not {EAGER.shape(gradient)}"
        )
    if isinstance(gradient, Recorded):
        return gradient
    return float(gradient) if type(of._data) is float else np.asarray(gradient, of._data.dtype)


_ONE = RLock()  #: marks are written to the values: one pass at a time has any


@contextmanager
def _marked(root: Recorded, since: int = 0) -> Iterator[list[Recorded]]:
    """What a value was computed from, as far as it requires a gradient: the last first.

    Those that were found are marked: their adjoint is not None. Whoever stops the pass, by Ctrl-C
    say, leaves no marks behind: the next pass would take them for its own.
    """
    found, kind = [root], EAGER.kind
    add = found.append
    with _ONE:
        try:
            root._bar = _UNREACHED
            for value in found:  # which grows meanwhile
                if value.serial > since:
                    for operand in value.operands:
                        if operand.__class__ is not kind and not isinstance(operand, Recorded):
                            continue
                        if operand._bar is None and operand.requires_grad:
                            add(operand)
                            operand._bar = _UNREACHED
            found.sort(key=attrgetter("serial"), reverse=True)
            yield found
        except BaseException:
            for value in found:
                value._bar = None
            raise


def _checked(order: list[Recorded], since: int = 0, *, recording: bool = False) -> bool:
    """Whether the sweep of single numbers will do; values keep their marks then.

    Raises:
        DifferentiationError: the graph was freed, or data that are needed were changed.
    """
    applied = set(map(attrgetter("primitive"), order))
    numbers = set(map(type, map(attrgetter("_data"), order))) == {float}
    numbers = numbers and not (since or recording)
    numbers = numbers and not any(isinstance(name, Structural) for name in applied)
    oldest = next((v.serial for v in reversed(order) if v.operands), State.changed)
    for name in applied:
        if name.startswith("freed:"):
            raise DifferentiationError(
                "the graph was freed by the backward pass before:"
                f" {name[6:]!r} has let go of its operands",
                hint="keep it with backward(retain_graph=True), or compute the value anew",
            )
    if not numbers:
        for value in order:
            if value._mark is not None:
                value.look()
            for operand in value.operands:
                if getattr(operand, "_mark", None) is not None:
                    operand.look()
    if State.changed > oldest:
        _check_changes(order, since)
    if not numbers:
        for value in order:
            value._bar = None
    return numbers


def _check_changes(order: list[Recorded], since: int) -> None:
    for value in order:
        for operand in (value, *value.operands) if value.operands and value.serial > since else ():
            if isinstance(operand, Recorded) and operand._changed > value.serial:
                whose = f" {operand.name!r}" if operand.name else ""
                raise DifferentiationError(
                    f"a value{whose} that the backward pass needs was changed after"
                    f" {called(value.primitive)!r} used it",
                    hint="change it after backward(), or compute the result anew",
                )


def _step(value: Recorded, as_values: bool) -> Step:
    """A value as the sweep sees it."""
    tails: list[Any] = []
    values: list[Any] = []
    for operand in value.operands:
        if type(operand) is float or not isinstance(operand, Recorded):
            tails.append(None)
            values.append(operand)
        else:
            tails.append(operand if operand.requires_grad else None)
            values.append(operand if as_values else operand._data)
    out = value if as_values else value._data
    return Step(value, value.primitive, tuple(tails), tuple(values), out)


# --- where all is single numbers: the same rules, read once for each primitive -------------------


def _sweep_of_floats(
    order: list[Recorded],
    seed: float,
    *,
    found: dict[Recorded, Any] | None = None,
    free: bool = False,
) -> None:
    """The sweep, in a fifth of the time; adjoints go into ``found``, or else to the values."""
    if _RULES.generation != FUNCTIONS.generation:
        _RULES.clear()
        _RULES.generation = FUNCTIONS.generation
    order[0]._bar = seed
    for value in order:
        bar, value._bar = value._bar, None
        if bar is not _UNREACHED:
            if found is not None:
                found[value] = bar
            elif value._grad is None:
                value._grad = bar
            else:
                value._grad += bar
                value._again += 1
            if operands := value.operands:
                rules, first, second, freed = _RULES[value.primitive]
                if free:
                    value.primitive = freed
                if first is None:
                    _pull(operands, rules, bar, value._data)
                    continue
                left, right = operands  # both partials are numbers or operands: in no call
                if left.__class__ is float:
                    right._bar += bar * (left if second.__class__ is int else second)
                elif right.__class__ is float:
                    left._bar += bar * (right if first.__class__ is int else first)
                else:
                    if left.requires_grad:
                        left._bar += bar * (right._data if first.__class__ is int else first)
                    if right.requires_grad:
                        right._bar += bar * (left._data if second.__class__ is int else second)
        elif free and value.operands:
            value.primitive = _FREED[value.primitive]


def _pull(operands: tuple[Any, ...], rules: tuple[Any, ...], bar: float, out: float) -> None:
    """The same for primitives of any kind."""
    data = [*[o if type(o) is float else o._data for o in operands], out]
    for operand, rule in zip(operands, rules, strict=True):
        if type(operand) is not float and operand.requires_grad and rule is not None:
            kind = type(rule)
            partial = rule if kind is float else data[rule] if kind is int else rule(data)
            operand._bar += bar * partial


class _Partials:
    """A builder of functions: an operand is its number, what is emitted a function of them all."""

    def __init__(self) -> None:
        self.rules: dict[tuple[str, int], Any] = {}

    def constant(self, value: float) -> float:
        """A number is itself."""
        return value

    def emit(self, name: str, *operands: Any) -> Callable[[list[float]], float] | float:
        """The primitive applied to what is still to be known."""
        function = floats.function(name)
        if {type(o) for o in operands} == {float}:
            return function(*operands)

        def applied(values: list[float]) -> float:
            return function(
                *[values[o] if type(o) is int else o if type(o) is float else o(values)
                  for o in operands]
            )  # fmt: skip

        return applied


class _Rules(dict[str, tuple[Any, Any, Any, str]]):
    """For each primitive its partials: numbers, operands (from 0), functions, or None.

    Behind them the two of a primitive such as ``mul``, each a number or the other operand; and
    what it is called once its graph has been let go of.
    """

    generation = 0

    def __missing__(self, name: str) -> tuple[Any, Any, Any, str]:
        count = primitive(name).arity
        builder: Any = _Partials()
        rules: Any = tuple(
            emit_partial(builder, name, which, tuple(range(count)), count) for which in range(count)
        )
        simple = count == 2 and all(
            type(rule) is float or (type(rule) is int and rule == 1 - which)
            for which, rule in enumerate(rules)
        )
        self[name] = (rules, *(rules if simple else (None, None)), _FREED[name])
        return self[name]


class _Freed(Known[str]):
    """What a primitive is called once its graph has been let go of."""

    def __missing__(self, name: str) -> str:
        # Under its text alone: a function of Python's holds what it has saved.
        return self.keep(str(name), f"freed:{called(name)}")


_RULES, _FREED = _Rules(), _Freed()
