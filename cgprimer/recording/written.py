"""Recorded values written down in the language: the graph of what was run.

The text is the graph: it prints, is drawn, stepped through, trained and differentiated as any
other. What Python has named is a vertex; what it has not is written into the expression that
uses it.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.language.syntax import (
    Apply,
    Declaration,
    Definition,
    Expression,
    Name,
    Number,
    Program,
    Shape,
    Structural,
)
from cgprimer.core.primitives.notation import program_text
from cgprimer.core.primitives.registry import ARRAY_FUNCTIONS
from cgprimer.core.primitives.structural import common_shape_of, numpy_key
from cgprimer.errors import Source, UsageError
from cgprimer.recording.eager import Recorded

_LONGEST = 24  # operations in one expression; what is longer gets names for its parts
_LARGEST = 100_000  # places in the matrix that a scatter is written as


class Writer:
    """Writes values as statements; names are given once, the first to come has the plain one.

    Attributes:
        named: the vertices and leaves, by name.
    """

    def __init__(self, *, every: bool = False) -> None:
        """``every``: each operation is a vertex of its own."""
        self.every = every
        self.named: dict[str, Recorded | None] = {}
        self._hints: dict[Recorded, str] = {}
        self._arrays: dict[Any, str] = {}
        self._known: dict[Any, Name] = {}  # leaves: values, and the contents of plain arrays
        self._taken: Counter[str] = Counter()
        self._count = 0
        self._leaves: dict[str, list[Declaration]] = {"input": [], "parameter": []}

    def name(self, text: str, value: Recorded | None = None) -> str:
        """A name that nothing else has: ``h``, then ``h_2``."""
        plain = re.sub(r"\W", "_", text)
        plain = plain if plain.isidentifier() else f"v{plain}"
        found = plain
        while found in self.named:
            self._taken[plain] += 1
            found = f"{plain}_{self._taken[plain] + 1}"
        self.named[found] = value
        return found

    def hint(self, name: str, what: Any) -> None:
        """What a value, or a plain array with such contents, is called in Python."""
        if isinstance(what, Recorded):
            self._hints.setdefault(what, name)
        else:
            self._arrays.setdefault(_contents(what), name)

    def leaf(self, role: str, name: str, value: Any) -> Name:
        """Declare an input or a parameter: a value, or a plain array."""
        recorded = value if isinstance(value, Recorded) else None
        data = np.asarray(value._data if isinstance(value, Recorded) else value, float)
        if not data.size:
            raise UsageError(f"{name!r} of shape {data.shape} is empty: the language has no such")
        if not np.isfinite(data).all():
            raise UsageError(f"{name!r} is not finite: a declared value is, in the language")
        made = Name(self.name(name, recorded))
        shown = _nested(data.tolist())
        self._leaves[role].append(Declaration(role, made.name, shown, 0, data.shape))
        self._known[value if recorded is not None else _contents(value)] = made
        return made

    def graph(self, outputs: Mapping[str, Any], source: str) -> ExpressionGraph:
        """The graph of all that outputs were computed from; ``source`` is what messages call it."""
        order = self._reachable([v for v in outputs.values() if isinstance(v, Recorded)])
        uses = Counter(o for v in order for o in self._operands(v) if isinstance(o, Recorded))
        wanted = {v: name for name, v in reversed([*outputs.items()]) if isinstance(v, Recorded)}
        trees: dict[Any, Expression] = dict(self._known)
        sizes: Counter[Recorded] = Counter()
        definitions: list[Definition] = []
        for value in order:
            if value in trees:
                continue
            if not value.primitive:
                role = "parameter" if value.requires_grad else "input"
                trees[value] = self.leaf(role, self._called(value) or "const", value)
                continue
            operands = self._operands(value)
            if value.primitive == "copy" and value.requires_grad and not self.every:
                trees[value] = self.tree(operands[0], trees)
                continue
            tree = _applied(value, [self.tree(o, trees) for o in operands], operands, self)
            if not value.requires_grad and any(getattr(o, "requires_grad", 0) for o in operands):
                tree = Apply("stop_gradient", (tree,))  # computed under no_grad
            sizes[value] = 1 + sum(sizes[o] for o in operands if isinstance(o, Recorded))
            name = self._called(value) or wanted.get(value, "")
            if name or self.every or uses[value] > 1 or sizes[value] > _LONGEST:
                if not name:  # v1, v2
                    self._count += 1
                made = self.name(name or f"v{self._count}", value)
                definitions.append(Definition(made, tree, (), 0))
                tree, sizes[value] = Name(made), 0
            trees[value] = tree
        shown: dict[str, None] = {}
        for name, value in outputs.items():
            tree = self.tree(value, trees)
            if tree in self._known.values() or not isinstance(tree, Name) or tree.name in shown:
                definitions.append(Definition(self.name(name), tree, (), 0))  # a vertex of its own
                tree = Name(definitions[-1].name)
            shown[tree.name] = None
        ends = [Declaration("output", name, None, 0) for name in shown]
        program = Program(Source("", ""), (*self._leaves["input"], *self._leaves["parameter"],
                                           *definitions, *ends))  # fmt: skip
        return parse(program_text(program), name=source)

    def _called(self, value: Recorded) -> str:
        return value.name or self._hints.get(value, "")

    def tree(self, operand: Any, trees: Mapping[Any, Expression]) -> Expression:
        """An operand: what stands for a value, a number, or a plain array as an input."""
        if isinstance(operand, Recorded):
            return trees[operand]
        if not np.ndim(operand):
            return _number(float(operand))
        key = _contents(operand)
        return self._known.get(key) or self.leaf("input", self._arrays.get(key, "const"), operand)

    def _reachable(self, roots: list[Recorded]) -> list[Recorded]:
        """Values in the order of their making, down to the leaves that are known."""
        seen, stack = set(roots), roots
        while stack:
            value = stack.pop()
            if value.primitive.startswith("freed:"):
                raise UsageError(
                    "what this value was computed from was freed by a backward pass",
                    hint="keep it with backward(retain_graph=True)",
                )
            for operand in () if value in self._known else self._operands(value):
                if isinstance(operand, Recorded) and operand not in seen:
                    seen.add(operand)
                    stack.append(operand)
        return sorted(seen, key=operator.attrgetter("serial"))

    def _operands(self, value: Recorded) -> tuple[Any, ...]:
        """Operands without the broadcasts that operators of the language do by themselves."""
        operands = value.operands
        if isinstance(value.primitive, Structural) or type(value._data) is float:
            return operands
        short = tuple(self._unrepeated(o) for o in operands)
        shapes = [_shape(o) for o in short]
        fits = shapes and common_shape_of("", *shapes) == _shape(value)
        return short if fits else operands

    def _unrepeated(self, operand: Any) -> Any:
        if not isinstance(operand, Recorded):
            while isinstance(operand, np.ndarray) and operand.size > 1 and not operand.strides[0]:
                operand = operand[0]  # numpy's way to repeat: all places are one
            return operand
        while getattr(operand.primitive, "kind", "") == "broadcast" and not self._called(operand):
            (operand,) = operand.operands
        return operand


def _applied(value: Recorded, trees: list[Expression], operands: Any, writer: Writer) -> Expression:
    """A primitive as the language writes it."""
    name, shape = value.primitive, _shape(value)
    if not isinstance(name, Structural):
        if name == "where" and isinstance(trees[0], Number):
            chosen = 1 if trees[0].value else 2  # it is known which
            if _shape(operands[chosen]) == shape:
                return trees[chosen]
        return Apply(name, tuple(trees))
    a, own = trees[0], _shape(operands[0])
    match name.kind:
        case "reshape" | "broadcast":
            return _reshaped(a, shape) if name.kind == "reshape" else _call("broadcast", a, shape)
        case "transpose":
            return _call("transpose", a, [axis + len(own) for axis in name.setting[0]])
        case "sum" | "largest":
            axes = [axis + len(own) for axis in name.setting[0]]
            if len(axes) == len(own):
                return Apply(name.kind, (a,))
            return _call("sum" if name.kind == "sum" else "largest_along", a, axes)
        case "take":
            return _indexed(a, own, name.setting[0], shape)
        case "concatenate":
            axis = name.setting[0] + len(own)
            return Apply("concatenate", (*trees, *([Number(float(axis))] if axis else [])))
        case "scatter":  # a product with a matrix of zeros and ones, as the language has no other
            flat = np.arange(math.prod(shape)).reshape(shape)
            places = flat[tuple(map(numpy_key, name.setting[0]))].reshape(-1)
            if places.size * flat.size > _LARGEST:
                raise UsageError(f"elements placed into {shape} are too many to be written down")
            matrix = np.zeros((flat.size, places.size))
            matrix[places, np.arange(places.size)] = 1.0
            left = writer.leaf("input", "places", matrix)
            return _reshaped(Apply("matmul", (left, _call("reshape", a, [places.size]))), shape)
        case "custom":
            return _own(name.setting[0], trees, writer)
    return Apply(name.kind, tuple(trees))


def _own(custom: Any, trees: list[Expression], writer: Writer) -> Apply:
    """A function with its own backward pass, if the language has it."""
    if custom.name not in ARRAY_FUNCTIONS:
        raise UsageError(
            f"{custom.name!r} is recorded, but the language has no such function",
            hint=f"make it one: cgprimer.register_primitive({custom.name}) of a Function, or"
            f" register_primitive({custom.name!r}, f, partials=...) of a function and its formulas",
        )
    given = iter(trees)
    arguments = enumerate(custom.arguments)
    return Apply(custom.name, tuple(
        next(given) if i in custom.places else writer.tree(a, {}) for i, a in arguments
    ))  # fmt: skip


def _call(name: str, a: Expression, numbers: Any) -> Apply:
    return Apply(name, (a, *(Number(float(n)) for n in numbers)))


def _reshaped(a: Expression, shape: Shape) -> Apply:
    return _call("reshape", a, shape) if shape else Apply("sum", (a,))


def _indexed(a: Expression, own: Shape, key: tuple[Any, ...], shape: Shape) -> Apply:
    """An index; lists of lists of places are written as one list of places in a row."""
    if any(isinstance(part, tuple) and np.ndim(part) > 1 for part in key):
        size = math.prod(own)
        flat = np.arange(size).reshape(own)[tuple(map(numpy_key, key))].reshape(-1)
        places = tuple(flat.tolist()) or slice(0, 0)
        row = Apply(Structural("index", places), (_call("reshape", a, [size]),))
        return _reshaped(row, shape)
    parts = [
        slice(0, 0) if part == ()
        else part if not isinstance(part, range)
        else slice(None) if part == range(size)
        else slice(part.start, part.stop if part.stop >= 0 else None, part.step)
        for part, size in zip(key, own, strict=True)
    ]  # fmt: skip
    while len(parts) > 1 and parts[-1] == slice(None):
        parts.pop()
    return Apply(Structural("index", *parts), (a,))


def _number(value: float) -> Expression:
    """A number; infinities and nan are what a division by zero gives."""
    if math.isfinite(value):
        return Number(value)
    top = 0.0 if math.isnan(value) else math.copysign(1.0, value)
    return Apply("div", (Number(top), Number(0.0)))


def _shape(value: Any) -> Shape:
    return np.shape(value._data if isinstance(value, Recorded) else value)


def _contents(array: Any) -> Any:
    data = np.ascontiguousarray(array, float)
    return data.shape, data.tobytes()


def _nested(rows: Any) -> Any:
    return tuple(map(_nested, rows)) if isinstance(rows, list) else rows
