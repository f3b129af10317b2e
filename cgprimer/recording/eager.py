"""A builder that computes at once: what a tape would hold as an instruction is a number here.

It has the words that the sweep and the rules use of :class:`cgprimer.core.tape.builder.Builder`
(``emit``, ``constant``, ``shape``, ``broadcast``, ``product``, ``hand``), so that nothing about
derivatives is written a second time. Where an operand is a :class:`Value` that is being recorded,
the result is one, too: so a derivative can be recorded, and differentiated again.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cgprimer.core.language.syntax import Shape, Structural
from cgprimer.core.primitives import arrays, floats
from cgprimer.core.primitives.registry import FUNCTIONS
from cgprimer.core.primitives.structural import common_shape_of, result_shape, shape_text
from cgprimer.errors import ShapeError

Number = Any  # a float, an array, or a Value
Called = TypeVar("Called", bound=Callable[..., Any])
serial = count(1).__next__  #: the next number: what comes later has a greater one
_HERE = str(Path(__file__).parent.parent)
_EXAMPLES = f"{_HERE}{os.sep}examples"  # as they are installed: programs that use the package
_CHECKED = ("matmul", "concatenate")
UNSEEN = b""  #: of an array that somebody else may hold: what is in it is not known


class State:
    """Whether operations are recorded at present, and whether with the lines that did them."""

    recording = True
    with_lines = False
    plain = True  # recording, and without lines
    changed = 0  # when data were last changed
    quiet = False  # whether numpy's warnings are silenced already

    @classmethod
    def set(cls, *, recording: bool, with_lines: bool) -> tuple[bool, bool]:
        """Change both; returns what they were."""
        before = cls.recording, cls.with_lines
        cls.recording, cls.with_lines = recording, with_lines
        cls.plain = recording and not with_lines
        return before


@contextmanager
def quiet() -> Iterator[None]:
    """Infinities and nan are values here, not warnings of numpy's: said once for a whole pass."""
    before, State.quiet = State.quiet, True
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        State.quiet = before


@contextmanager
def recording(on: bool) -> Iterator[None]:
    """Record what is done inside, or do not; whatever is outside."""
    before = State.set(recording=on, with_lines=State.with_lines and not on)
    try:
        yield
    finally:
        State.set(recording=before[0], with_lines=before[1])


class Recorded:
    """What a :class:`Value` consists of; operators and numpy's protocols are added to it.

    Attributes:
        requires_grad: whether derivatives with respect to it, or through it, are wanted.
        name: what pictures and listings call it.
        primitive: what computed it; empty for a leaf.
        operands: from what, values or plain numbers.
        serial: when: a value is computed after its operands.
        line: the file and line that computed it, where these are recorded.
    """

    # What every value of a loop of a million operations has stands in slots; what few have is in
    # the dictionary of those few, and here for all others.
    __slots__ = (
        "__dict__", "__weakref__", "_bar", "_data", "_grad", "operands", "primitive",
        "requires_grad", "serial",
    )  # fmt: skip
    _data: Any
    _grad: Any
    _bar: Any  # the adjoint so far, while a backward pass runs
    requires_grad: bool
    primitive: str
    operands: tuple[Any, ...]
    serial: int
    name: str = ""
    line: tuple[str, int] | None = None
    _again: int = 0  # how many backward passes have added to a gradient that was there
    _changed: int = 0  # when its data were last replaced or written to
    _mark: bytes | None = None  # what its array was when it was handed out or used last

    def changed(self) -> None:
        """Note that the data are others from now on."""
        self._changed = State.changed = serial()

    def handed_out(self) -> Any:
        """The data, for somebody who may write into them."""
        data = self._data
        if type(data) is not float and self._mark is None:
            if data.base is not None or not data.flags.writeable:
                data = self._data = np.array(data)  # a view: writing would change others, too
            self._mark = data.tobytes()
        return data

    def look(self) -> None:
        """Notice what was written into the array since it was handed out, or used."""
        if self._mark is None:
            return
        if self._mark is UNSEEN or self._data.tobytes() != self._mark:
            self.changed()
        alone = sys.getrefcount(self._data) <= 2  # nobody else can write into it any more
        self._mark = None if alone else self._data.tobytes()


class Eager:
    """Computes what it is told to emit; see the head of this file."""

    def __init__(self, kind: type[Recorded] = Recorded) -> None:
        self.kind = kind
        self.rules: dict[tuple[str, int], Any] = {}
        self.functions: dict[str, Callable[..., Any]] = {}
        self.generation = 0  # of the table, when functions and rules were looked up

    def constant(self, value: float) -> float:
        """A number is itself."""
        return value

    def shape(self, value: Number) -> Shape:
        """The shape of a number, an array or a value."""
        data = value._data if isinstance(value, Recorded) else value
        if type(data) is float:
            return ()
        shape: Shape = data.shape if type(data) is np.ndarray else np.shape(data)
        return shape

    def broadcast(self, value: Number, shape: Shape) -> Number:
        """Repeated to a shape, as numpy does it."""
        own = self.shape(value)
        if own == shape:
            return value
        if common_shape_of("broadcast", own, shape) != shape:
            raise ShapeError(f"{shape_text(own)} cannot be repeated to {shape_text(shape)}")
        return self.emit(Structural("broadcast", len(own), shape), value)

    def emit(self, name: str, *operands: Number) -> Number:
        """The value of a primitive; a recorded one where an operand is.

        Raises:
            ShapeError: the shapes do not go together; the message says which line did it.
        """
        recorded, data, shapes = [], [], set()
        for operand in operands:
            if isinstance(operand, Recorded):
                if operand._mark is not None:
                    operand.look()
                own = operand._data
                recorded.append(operand)
                shapes.add(() if type(own) is float else own.shape)
            else:
                own = operand
                if type(own) is not float:  # a plain number fits every shape
                    shapes.add(np.shape(own))
            data.append(own)
        try:
            if isinstance(name, Structural):
                data = [np.asarray(d) if type(d) is float else d for d in data]
                if name.kind in _CHECKED:  # others were when they were made, or numpy does it
                    result_shape(name, *[d.shape for d in data])
            elif all([type(d) is float for d in data]):  # noqa: C419 - in half the time
                return self.result(floats.function(name)(*data), name, operands, recorded)
            elif len(shapes) > 1:
                shape = common_shape_of(name, *shapes)
                operands = tuple([self.repeated(o, shape) for o in operands])
                data = [o._data if isinstance(o, Recorded) else o for o in operands]
        except ShapeError as error:
            raise located(error) from None
        if self.generation != FUNCTIONS.generation:
            self.functions, self.rules, self.generation = {}, {}, FUNCTIONS.generation
        function = self.functions.get(name)
        if function is None:
            function = self.functions[name] = arrays.function(name)
        if State.quiet:
            made = function(*data)
        else:
            with np.errstate(all="ignore"):
                made = function(*data)
        if made.dtype == np.float64 and not made.shape:
            made = float(made)
        return self.result(made, name, operands, recorded)

    def repeated(self, operand: Number, shape: Shape) -> Number:
        """An operand in another shape: a step of its own, which hands back a sum of adjoints."""
        recorded = isinstance(operand, Recorded)
        if type(operand) is float:
            return operand
        data = np.asarray(operand._data if recorded else operand)
        if data.shape == shape:
            return operand
        made = arrays.broadcast(data, data.ndim, shape)
        if not recorded:
            return made
        return self.result(made, Structural("broadcast", data.ndim, shape), (operand,), [operand])

    def result(
        self, made: Any, name: str, operands: tuple[Number, ...], recorded: list[Recorded]
    ) -> Number:
        """What was computed: a value where an operand was one, which remembers where it can."""
        if not recorded:
            return made
        wanted = State.recording and any([v.requires_grad for v in recorded])  # noqa: C419
        kept = wanted or State.with_lines  # a graph of all that was done has constants, too
        value = self.noted(made, name, operands) if kept else self.noted(made, "", ())
        value.requires_grad = wanted
        return value

    def noted(self, made: Any, name: str, operands: tuple[Number, ...]) -> Recorded:
        """A new value that remembers how it was computed."""
        value = object.__new__(self.kind)
        value._data, value.primitive, value.operands, value.serial = made, name, operands, serial()
        value._grad = value._bar = None
        value.requires_grad = True
        if State.with_lines:
            value.line = calling_line()
        return value

    def product(self, bar: Number, partial: Number) -> Number:
        """An adjoint times a partial; nothing is computed where the partial is 1."""
        if type(partial) is float and partial == 1.0:
            return bar
        if type(bar) is type(partial) is np.ndarray and bar.dtype != partial.dtype:
            partial = partial.astype(bar.dtype)  # single precision stays single
        return self.emit("mul", bar, partial)

    def hand(self, totals: dict[Any, Number], to: Any, product: Number, *share: Any) -> None:
        """Add to the total of a value: this is where paths meet."""
        known = totals.get(to)
        totals[to] = product if known is None else self.emit("add", known, product)


def called(primitive: str) -> str:
    """What a primitive is called where it is shown."""
    kind: str = getattr(primitive, "kind", primitive)
    name = primitive.setting[0].name if kind == "custom" else kind  # type: ignore[attr-defined]
    return name.removeprefix("freed:")


def calling_line() -> tuple[str, int]:
    """The file and line of the program that uses the package."""
    frame = sys._getframe(1)
    file = frame.f_code.co_filename
    while frame.f_back and file.startswith(_HERE) and not file.startswith(_EXAMPLES):
        frame = frame.f_back
        file = frame.f_code.co_filename
    return file, frame.f_lineno


def located(error: ShapeError) -> ShapeError:
    """The error with the line of the program that it comes from."""
    if hasattr(error, "located"):
        return error
    file, number = calling_line()
    text = linecache.getline(file, number).strip()
    what = f"{error.message}\n  {file}:{number}: {text}"
    made = ShapeError(what.rstrip(": "), hint=error.hint)
    made.__dict__["located"] = True
    return made


def locating(function: Called) -> Called:
    """A function whose errors of shape say which line of the program they come from."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ShapeError as error:
            raise located(error) from None

    return called  # type: ignore[return-value]


EAGER: Any = Eager()  #: the one that values are computed with; its kind is Value
