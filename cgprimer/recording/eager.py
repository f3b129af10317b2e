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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from itertools import count
from pathlib import Path
from threading import RLock, get_ident, local
from typing import Any, TypeVar

import numpy as np

from cgprimer.core.language.syntax import Shape, Structural
from cgprimer.core.primitives import arrays, floats
from cgprimer.core.primitives.registry import FUNCTIONS
from cgprimer.core.primitives.shaped import unrepeated
from cgprimer.core.primitives.structural import common_shape_of, result_shape, shape_text
from cgprimer.errors import CgprimerError, ShapeError, SourceError

Number = Any  # a float, an array, or a Value
Called = TypeVar("Called", bound=Callable[..., Any])
Kind = TypeVar("Kind")
_LONG = 1000
_NUMPYS = {"dim": "axis", "keepdim": "keepdims", "correction": "ddof", "p": "ord"}
_new = object.__new__
serial = count(1).__next__  #: the next number: what comes later has a greater one
_HERE = str(Path(__file__).parent.parent)
_NUMPY = str(Path(np.__file__).parent)  # which calls a value's methods, too
_EXAMPLES = f"{_HERE}{os.sep}examples"  # as they are installed: programs that use the package
UNSEEN = b"?"  #: of an array that somebody else may hold: what is in it is not known


class _OfThread(local):
    """What a thread is about: ``no_grad`` in one stops nobody else's recording."""

    recording = True
    with_lines = False
    depth = 0  # transforms that are at work: inside of one, a backward pass is recorded


class State:
    """Whether operations are recorded at present, and whether with the lines that did them."""

    here = _OfThread()
    plain = True  # every thread records, and without lines: nobody needs to ask ``here``
    changed = 0  # when data were last changed
    _lock, _others = RLock(), set[int]()  # threads that do not

    @classmethod
    def settle(cls) -> None:
        """Find out whether it is plain, after this thread has changed what it is about."""
        here = cls.here
        ordinary = here.recording and not here.with_lines
        if ordinary and cls.plain:
            return
        change = cls._others.discard if ordinary else cls._others.add
        with cls._lock:
            change(get_ident())
            cls.plain = not cls._others


def _silence() -> tuple[ContextVar[Any], Any]:
    """Where numpy has what it does about infinities, and what that is where it says nothing.

    To set it takes a sixth of the time of ``np.errstate``, which every operation would need.
    """
    with np.errstate(all="ignore"):
        found = [(v, on) for v, on in copy_context().items() if v.name == "numpy.ufunc.extobj"]
    return found[0] if found else (ContextVar("silence", default=None), None)


# Ctrl-C may come behind any call: what is changed is changed within the ``try`` that undoes it.
WARNINGS, SILENT = _silence()


@contextmanager
def quiet() -> Iterator[None]:
    """Infinities and nan are values here, not warnings of numpy's: said once for a whole pass."""
    loud = WARNINGS.get()
    try:
        WARNINGS.set(SILENT)
        yield
    finally:
        if loud is not SILENT:  # Ctrl-C may let the outer one end before the inner one
            WARNINGS.set(loud)


@contextmanager
def recording(on: bool, *, with_lines: bool | None = None, deeper: int = 0) -> Iterator[None]:
    """Record what is done inside, or do not; whatever is outside."""
    here = State.here
    before = here.recording, here.with_lines
    lines = here.with_lines and not on if with_lines is None else with_lines
    try:
        here.recording, here.with_lines = on, lines
        here.depth += deeper
        State.settle()
        yield
    except ValueError as error:  # numpy's, where ``array[0] = value`` was refused
        if isinstance(error.__cause__, CgprimerError):
            raise error.__cause__ from None
        raise
    finally:
        here.recording, here.with_lines = before
        here.depth -= deeper
        State.settle()


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


class Known(dict[str, Kind]):
    """What is known of primitives by their names; long ones have lists of indices in them."""

    def keep(self, name: str, found: Kind) -> Kind:
        """What was found; memory stays small where indices are others in every turn."""
        if len(name) < _LONG:
            if len(self) >= _LONG:
                self.clear()
            self[name] = found
        return found


class Eager:
    """Computes what it is told to emit; see the head of this file."""

    def __init__(self, kind: type[Recorded] = Recorded) -> None:
        self.kind = kind
        self.rules: dict[tuple[str, int], Any] = {}
        self.functions: Known[Callable[..., Any]] = Known()
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
        """The value of a primitive; a recorded one where an operand is. Numpy broadcasts.

        Raises:
            ShapeError: the shapes do not go together; the message says which line did it.
        """
        data, recorded, wanted, arrays_met = [], False, False, name.__class__ is not str
        kind = self.kind
        for operand in operands:
            own, found = operand, operand.__class__
            if found is kind or (found is not float and isinstance(operand, Recorded)):
                recorded = True
                if operand.requires_grad:
                    wanted = True
                if operand._mark is not None:
                    operand.look()
                own = operand._data
                found = own.__class__
            if found is not float:
                arrays_met = True
            data.append(own)
        if not arrays_met:
            made = floats.function(name)(*data)
        else:
            if self.generation != FUNCTIONS.generation:
                self.functions, self.rules = Known(), {}
                self.generation = FUNCTIONS.generation
            function = self.functions.get(name)
            if function is None:
                function = self.functions.keep(name, function_of(name))
            loud = WARNINGS.get()
            try:
                if loud is not SILENT:
                    WARNINGS.set(SILENT)
                made = function(*data)
            except (ValueError, ShapeError) as error:
                raise misfit(name, data, error) from None
            finally:
                if loud is not SILENT:
                    WARNINGS.set(loud)
            if not made.ndim and made.dtype == np.float64:
                made = float(made)
        if wanted and State.plain:
            value = _new(kind)
            value._data, value.primitive, value.operands, value.serial = (
                made, name, operands, serial(),
            )  # fmt: skip
            value._grad = value._bar = None
            value.requires_grad = True
            return value
        return self.result(made, name, operands, wanted=wanted) if recorded else made

    def result(
        self, made: Any, name: str, operands: tuple[Number, ...], *, wanted: bool
    ) -> Recorded:
        """What was computed of values: one that remembers how, where it can."""
        wanted = wanted and State.here.recording
        if wanted or State.here.with_lines:  # a graph of all that was done has constants, too
            value = self.noted(made, name, operands)
        else:  # it does not know whose view it is: what is written there must not change it
            value = self.noted(made if getattr(made, "base", None) is None else made.copy(), "", ())
        value.requires_grad = wanted
        return value

    def noted(self, made: Any, name: str, operands: tuple[Number, ...]) -> Recorded:
        """A new value that remembers how it was computed."""
        value = object.__new__(self.kind)
        value._data, value.primitive, value.operands, value.serial = made, name, operands, serial()
        value._grad = value._bar = None
        value.requires_grad = True
        if State.here.with_lines:
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
        product = unrepeated(self, product, self.shape(to))
        known = totals.get(to)
        totals[to] = product if known is None else self.emit("add", known, product)


def function_of(name: str) -> Callable[..., Any]:
    """A primitive on arrays that have no axis of samples; one that moves elements takes floats."""
    function = arrays.function(name)
    if not isinstance(name, Structural):
        return function
    if name.kind == "matmul":
        return np.dot if name.setting == (1, 1) else np.matmul
    if name.kind == "transpose":
        return lambda a: np.asarray(a).transpose(name.setting[0])
    if name.kind == "reshape":
        return lambda a: np.asarray(a).reshape(name.setting[1])
    if name.kind == "sum":
        return partial(np.add.reduce, axis=name.setting[0])

    def checked(*data: Any) -> Any:
        data = tuple([np.asarray(d) for d in data])
        if name.kind == "concatenate":
            result_shape(name, *[d.shape for d in data])
        return function(*data)

    return checked


def misfit(name: str, data: Sequence[Any], error: Exception) -> Exception:
    """What numpy has found wrong, as an error of shapes that says which line did it."""
    if not isinstance(error, ShapeError):
        shapes = [np.shape(d) for d in data]
        try:
            if isinstance(name, Structural):
                result_shape(name, *shapes)
            else:
                common_shape_of(name, *shapes)
        except ShapeError as found:
            error = found
    return located(error) if isinstance(error, ShapeError) else error


def called(primitive: str) -> str:
    """What a primitive is called where it is shown."""
    kind: str = getattr(primitive, "kind", primitive)
    name = primitive.setting[0].name if kind == "custom" else kind  # type: ignore[attr-defined]
    return name.removeprefix("freed:")


def calling_line() -> tuple[str, int]:
    """The file and line of the program that uses the package."""
    frame = sys._getframe(1)
    file = frame.f_code.co_filename
    here = _HERE, _NUMPY
    while frame.f_back and file.startswith(here) and not file.startswith(_EXAMPLES):
        frame = frame.f_back
        file = frame.f_code.co_filename
    return file, frame.f_lineno


def located(error: CgprimerError) -> CgprimerError:
    """The error with the line of the program that it comes from."""
    if hasattr(error, "located") or isinstance(error, SourceError):
        return error
    file, number = calling_line()
    text = linecache.getline(file, number).strip()
    what = f"{error.message}\n  {file}:{number}: {text}"
    made = type(error)(what.rstrip(": "), hint=error.hint)
    made.__dict__["located"] = True
    return made


def locating(function: Called) -> Called:
    """A function whose errors say which line of the program they come from.

    Its options may have PyTorch's names.
    """

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {_NUMPYS.get(name, name): given for name, given in kwargs.items()}
        try:
            return function(*args, **kwargs)
        except CgprimerError as error:
            raise located(error) from None

    return called  # type: ignore[return-value]


EAGER: Any = Eager()  #: the one that values are computed with; its kind is Value
