"""The tape itself: data only.

A tape is a Wengert list: leaves first, then instructions in execution order, then names for
some of the values and the list of outputs. A value is an index: leaf ``i`` is value ``i``,
instruction ``j`` is value ``len(leaves) + j``. Every operand stands before its user.

Names that the package makes (``bar.xz``, ``dot.xa``, ``target.xw``) contain a dot, which no name
of a user can.

Source: Wengert 1964, "A simple automatic derivative evaluation program".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from cgprimer.core.language.syntax import Shape, Structural, element_place
from cgprimer.errors import UsageError, listed, name_hint

Kind = Literal["column", "scalar", "constant"]


class Leaf(NamedTuple):
    """A value that is given. A column has one value per sample, a scalar one for all samples.

    Values are numbers unless the leaf has a shape: then each is an array of that shape.
    """

    kind: Kind
    name: str
    value: float = 0.0  # of a constant; of a mask how often it is 1; of a statistic the first
    shape: Shape = ()  # per sample


class Instruction(NamedTuple):
    """A primitive applied to earlier values."""

    primitive: str
    operands: tuple[int, ...]


class Share(NamedTuple):
    """What a sweep hands along one edge of the primal; each field is a value of the tape.

    ``total`` is a sum of products: the adjoint of ``tail`` in reverse mode, the tangent of ``head``
    in forward mode. Whoever shows or explains a derivative reads shares.

    Attributes:
        tail: an operand.
        head: what is computed from it.
        partial: the derivative of ``head`` with respect to ``tail``.
        product: the adjoint of ``head`` times the partial, or the partial times the tangent of
            ``tail``.
        total: the sum so far, this product included.
    """

    tail: int
    head: int
    partial: int
    product: int
    total: int


@dataclass(frozen=True, eq=False, repr=False)
class Tape:
    """A straight-line program.

    Attributes:
        leaves: columns, scalars and constants.
        instructions: in execution order.
        outputs: the names to be computed, and the value that each stands for.
        names: every named value: columns, scalars, vertices of the graph, adjoints, tangents.
        shares: of a derivative program: the products that its sweep adds up, in its order.

    >>> import cgprimer
    >>> print(cgprimer.tape(cgprimer.parse("xx = xa^2; xw = cd*xx + 1")))
    input     xa
    parameter cd
    xx = xa^2
    v1 = cd*xx
    xw = v1 + 1
    output    xw
    """

    leaves: tuple[Leaf, ...]
    instructions: tuple[Instruction, ...]
    outputs: Mapping[str, int]
    names: Mapping[str, int] = field(default_factory=dict)
    shares: tuple[Share, ...] = ()

    def __len__(self) -> int:
        """Number of instructions."""
        return len(self.instructions)

    @property
    def size(self) -> int:
        """Number of values: leaves and instructions."""
        return len(self.leaves) + len(self.instructions)

    def index(self, name: str) -> int:
        """The value that a name stands for.

        Raises:
            UsageError: no value of the tape has that name.
        """
        found = self.names.get(name, self.outputs.get(name))
        if found is None:
            base = element_place(name)[0]
            whole = f"take {base!r} as a whole, or define the element: a name = {name}"
            near = whole if base in self.names else name_hint(name, self.names)
            raise UsageError(f"the tape has no value called {name!r}", hint=near)
        return found

    def instruction(self, index: int) -> Instruction | None:
        """The instruction that computes a value; None for a leaf."""
        return self.instructions[index - len(self.leaves)] if index >= len(self.leaves) else None

    @cached_property
    def labels(self) -> dict[int, str]:
        """One name per named value: the first that was given."""
        labels: dict[int, str] = {}
        for name, index in self.names.items():
            labels.setdefault(index, name)
        return labels

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape of every value, per sample; empty where all values are numbers.

        >>> import cgprimer
        >>> cgprimer.tape(cgprimer.parse("parameter W[2,3]; input x[3]; xh = W @ x")).shapes[-1]
        (2,)
        """
        structural = any(type(name) is not str for name in {name for name, _ in self.instructions})
        if not structural and not any(leaf.shape for leaf in self.leaves):
            return ()
        from cgprimer.core.primitives.structural import result_shape

        shapes = [leaf.shape for leaf in self.leaves]
        for name, operands in self.instructions:
            ours = [shapes[o] for o in operands]
            if isinstance(name, Structural):
                shapes.append(result_shape(name, *ours))
            else:  # operands have one shape, or are constants
                shapes.append(max(ours, key=len))
        return tuple(shapes)

    @cached_property
    def custom(self) -> tuple[str, ...]:
        """The names of functions with a backward pass of their own."""
        applied = {name for name, _ in self.instructions if type(name) is not str}
        own = [n for n in applied if getattr(n, "kind", "") in ("custom", "backward")]
        return tuple(sorted({n.setting[0].name for n in own}))  # type: ignore[attr-defined]

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Names of the leaves of a kind, in their order."""
        return tuple(leaf.name for leaf in self.leaves if leaf.kind == kind)

    def __repr__(self) -> str:
        outputs = listed(self.outputs)
        return f"<Tape: {len(self.leaves)} leaves, {len(self)} instructions, outputs {outputs}>"

    def __str__(self) -> str:
        from cgprimer.core.tape.printing import listing  # only this method looks back

        return listing(self)


def shape_of(tape: Tape, index: int) -> Shape:
    """The shape of a value of a tape, per sample."""
    return tape.shapes[index] if tape.shapes else ()
