"""A builder that computes at once: what a tape would hold as an instruction is a number here.

It has the words that the sweep and the rules use of :class:`cgprimer.core.tape.builder.Builder`
(``emit``, ``constant``, ``shape``, ``broadcast``, ``product``, ``hand``), so that nothing about
derivatives is written a second time. Where an operand is a :class:`Value` that is being recorded,
the result is one, too: so a derivative can be recorded, and differentiated again.
"""

from __future__ import annotations

import sys
from itertools import count
from typing import Any

import numpy as np

from cgprimer.core.language.syntax import Shape, Structural
from cgprimer.core.primitives import arrays, floats
from cgprimer.core.primitives.structural import common_shape_of, result_shape

Number = Any  # a float, an array, or a Value
_serial = count(1).__next__
_floats: dict[str, Any] = {}  # functions, looked up once
_HERE = __file__.rpartition("eager.py")[0]


class State:
    """Whether operations are recorded at present, and whether with the lines that did them."""

    recording = True
    with_lines = False
    plain = True  # recording, and without lines

    @classmethod
    def set(cls, *, recording: bool, with_lines: bool) -> tuple[bool, bool]:
        """Change both; returns what they were."""
        before = cls.recording, cls.with_lines
        cls.recording, cls.with_lines = recording, with_lines
        cls.plain = recording and not with_lines
        return before


class Recorded:
    """What a :class:`Value` consists of; operators and numpy's protocols are added to it.

    Attributes:
        requires_grad: whether derivatives with respect to it, or through it, are wanted.
        name: what pictures and listings call it.
        primitive: what computed it; empty for a leaf.
        operands: from what, values or plain numbers.
        serial: when: a value is computed after its operands.
    """

    # Defaults stand in the class: a value of a loop of a million operations sets four attributes.
    _data: Any = None
    _grad: Any = None
    _bar: Any = None  # the adjoint so far, while a backward pass runs
    _changed: int = 0  # when its data were last replaced or written to
    _mark: int | None = None  # what its array looked like when it was handed out
    requires_grad: bool = True
    name: str = ""
    primitive: str = ""
    operands: tuple[Any, ...] = ()
    serial: int = 0
    line: tuple[str, int] | None = None


class Eager:
    """Computes what it is told to emit; see the head of this file."""

    def __init__(self, kind: type[Recorded] = Recorded) -> None:
        self.kind = kind
        self.rules: dict[tuple[str, int], Any] = {}

    def constant(self, value: float) -> float:
        """A number is itself."""
        return value

    def shape(self, value: Number) -> Shape:
        """The shape of a number, an array or a value."""
        data = value._data if isinstance(value, Recorded) else value
        return () if type(data) is float else np.shape(data)

    def broadcast(self, value: Number, shape: Shape) -> Number:
        """Repeated to a shape, as numpy does it."""
        own = self.shape(value)
        if own == shape:
            return value
        return self.emit(Structural("broadcast", len(own), shape), value)

    def emit(self, name: str, *operands: Number) -> Number:
        """The value of a primitive; a recorded one where an operand is."""
        data = [o._data if isinstance(o, Recorded) else o for o in operands]
        tracked = any(isinstance(o, Recorded) and o.requires_grad for o in operands)
        plain = all(type(d) is float for d in data)
        if plain and not isinstance(name, Structural):
            function = _floats.get(name) or _floats.setdefault(name, floats.function(name))
            made = function(*data)
        else:
            if not isinstance(name, Structural):
                shapes = [np.shape(d) for d in data]
                shape = max(shapes, key=len)
                if any(s != shape for s in shapes if s):
                    shape = common_shape_of(name, *shapes)
                if shape:  # an operand that is repeated hands back the sum of its adjoints
                    operands = tuple(
                        o if type(d) is float and not isinstance(o, Recorded)
                        else self.broadcast(o, shape)
                        for o, d in zip(operands, data, strict=True)
                    )  # fmt: skip
                    data = [o._data if isinstance(o, Recorded) else o for o in operands]
            else:
                data = [np.asarray(d) for d in data]
                result_shape(name, *(d.shape for d in data))
            with np.errstate(all="ignore"):
                made = arrays.function(name)(*data)
            if not made.shape and made.dtype == np.float64:
                made = float(made)
        if not tracked or not State.recording:
            return self.plain(made, operands)
        return self.noted(made, name, operands)

    def plain(self, made: Any, operands: tuple[Number, ...]) -> Number:
        """A result that is not recorded: a value where an operand was one."""
        if not any(isinstance(o, Recorded) for o in operands):
            return made
        found = self.noted(made, "", ())
        found.requires_grad = False
        return found

    def noted(self, made: Any, name: str, operands: tuple[Number, ...]) -> Recorded:
        """A new value that remembers how it was computed."""
        value = object.__new__(self.kind)
        value._data, value.primitive, value.operands, value.serial = made, name, operands, _serial()
        if State.with_lines:
            value.line = calling_line()
        return value

    def product(self, bar: Number, partial: Number) -> Number:
        """An adjoint times a partial; nothing is computed where the partial is 1."""
        if type(partial) is float and partial == 1.0:
            return bar
        return self.emit("mul", bar, partial)

    def hand(self, totals: dict[Any, Number], to: Any, product: Number, *share: Any) -> None:
        """Add to the total of a value: this is where paths meet."""
        known = totals.get(to)
        totals[to] = product if known is None else self.emit("add", known, product)


def calling_line() -> tuple[str, int]:
    """The file and line of the program that uses the package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
