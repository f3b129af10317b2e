"""The chain of functions that a backward pass goes through, in PyTorch's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cgprimer.core.methods.reverse import Step, sweep
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import reachable
from cgprimer.errors import DifferentiationError
from cgprimer.recording.backward import accumulate, seed_of
from cgprimer.recording.eager import EAGER, Recorded, called, quiet
from cgprimer.recording.operators import as_data

if TYPE_CHECKING:
    from cgprimer.recording.value import Value


class GradFn:
    """A function of the backward pass: ``next_functions`` are those of the operands.

    Called with the gradient of its result, it returns that of each operand, None where an operand
    requires none; of the chain rule, it is one step. ``saved`` has the values that this step
    needs, and ``_saved_self``, ``_saved_other`` and ``_saved_result`` are single ones, as in
    PyTorch. Calling ``AccumulateGrad`` adds the gradient to ``grad`` of its variable.

    >>> from cgprimer import Value
    >>> w, b = Value(1.0, name="w"), Value(2.0, name="b")
    >>> print((3.0*w + b).sin().grad_fn)
    Sin -> Add -> (Mul -> (None, AccumulateGrad w), AccumulateGrad b)
    >>> product = (w*b).grad_fn
    >>> product(10.0), product.saved
    ((20.0, 10.0), {'self': 1.0, 'other': 2.0})
    """

    def __init__(self, value: Value | Recorded) -> None:
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

    def __call__(self, gradient: Any) -> tuple[Any, ...]:
        """Return the gradient of each operand for the gradient of the result.

        Args:
            gradient: the upstream gradient, of the shape of the result.

        Raises:
            DifferentiationError: another shape, or the graph was freed.
        """
        value = self.variable
        gradient = as_data(gradient._data if isinstance(gradient, Recorded) else gradient)
        if not value.primitive:
            accumulate(value, gradient, free=False)
            return ()
        self._check()
        seed, data = seed_of(value, gradient), _operand_data(value)
        gradients: list[Any] = []
        for which, operand in enumerate(value.operands):
            if not getattr(operand, "requires_grad", False):
                gradients.append(None)
                continue
            tails = (None,) * which + (operand,) + (None,) * (len(data) - which - 1)
            found = {None: seed}
            with quiet():
                sweep(EAGER, [Step(None, value.primitive, tails, data, value._data)], found)
            zero = EAGER.broadcast(0.0, EAGER.shape(operand))
            gradients.append(found.get(operand, zero))
        return tuple(gradients)

    @property
    def saved(self) -> dict[str, Any]:
        """The operands and results that this step of the backward pass needs, by name.

        Names are ``self``, ``other`` (of more than two operands ``operand_0`` and so on) and
        ``result``; of a :class:`cgprimer.Function` ``saved_tensors`` are what it has saved.

        Raises:
            DifferentiationError: the graph was freed.
        """
        value = self.variable
        if not value.primitive:
            return {}
        self._check()
        context = getattr(
            next(iter(getattr(value.primitive, "setting", ())), None), "context", None
        )
        if context is not None:
            return {"saved_tensors": context.saved}
        count = len(value.operands)
        names = ["self", "other"][:count] if count < 3 else [f"operand_{k}" for k in range(count)]
        data = dict(zip((*names, "result"), (*_operand_data(value), value._data), strict=True))
        return {name: data[name] for name in _needed(value, tuple(names)) if name in data}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_") and name[7:] in (saved := self.saved):
            return saved[name[7:]]
        if name == "saved_tensors" and name in (saved := self.saved):
            return saved[name]
        raise AttributeError(f"{self.name} has no attribute {name!r}")

    def _check(self) -> None:
        """Raise DifferentiationError if the graph was freed or its data have changed."""
        value = self.variable
        if value.primitive.startswith("freed:"):
            raise DifferentiationError(
                f"the graph was freed by a backward pass: {self.name} has no saved values any more",
                hint="keep it with backward(retain_graph=True), or compute the value again",
            )
        for operand in (value, *value.operands):
            if isinstance(operand, Recorded):
                operand.look()
                if operand._changed > value.serial:
                    whose = f" {operand.name!r}" if operand.name else ""
                    raise DifferentiationError(
                        f"a value{whose} that {self.name} needs was changed after it was used",
                        hint="compute the result again after changing its data",
                    )

    def __repr__(self) -> str:
        called = f" {self.variable.name}" if self.name == "AccumulateGrad" else ""
        return f"<{self.name}{called.rstrip()}>"

    def __str__(self) -> str:
        return _text(self, 12)


def function_of(operand: Any) -> GradFn | None:
    """The function of an operand: of a leaf that requires a gradient, the one that adds it up."""
    return GradFn(operand) if getattr(operand, "requires_grad", False) else None


def _operand_data(value: Value | Recorded) -> tuple[Any, ...]:
    """Return the operands of a value as numbers and arrays."""
    return tuple(o._data if isinstance(o, Recorded) else o for o in value.operands)


def _needed(value: Value | Recorded, names: tuple[str, ...]) -> list[str]:
    """Return the names of the values that the rules of one step read.

    The rules are written on a tape, on which the values that they read can be looked up.
    """
    builder = Builder()
    shapes = [EAGER.shape(data) for data in (*_operand_data(value), value._data)]
    leaves = [
        builder.leaf("column", name, shape=shape)
        for name, shape in zip((*names, "result"), shapes, strict=True)
    ]
    bar = builder.leaf("column", "gradient", shape=shapes[-1])
    places = [
        k if getattr(operand, "requires_grad", False) else None
        for k, operand in enumerate(value.operands)
    ]
    found: dict[Any, Any] = {None: bar}
    sweep(
        builder,
        [Step(None, value.primitive, tuple(places), tuple(leaves[:-1]), leaves[-1])],
        found,
    )
    results = [index for key, index in found.items() if key is not None]
    tape = builder.finish({f"gradient_{k}": index for k, index in enumerate(results)})
    needed = reachable(tape, [tape.outputs[f"gradient_{k}"] for k in range(len(results))])
    return [leaf.name for leaf, used in zip(tape.leaves, needed, strict=False) if used]


def chain_of(value: Value | Recorded) -> GradFn | None:
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
