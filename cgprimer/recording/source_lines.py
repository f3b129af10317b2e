"""Error messages with the line of the user's program."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cgprimer.errors import CgprimerError, SourceError

WrappedFunction = TypeVar("WrappedFunction", bound=Callable[..., Any])

_PACKAGE = str(Path(__file__).parent.parent)
_NUMPY = str(Path(np.__file__).parent)  # numpy calls methods of values too
_EXAMPLES = f"{_PACKAGE}{os.sep}examples"  # installed examples are programs that use the package
_NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims", "correction": "ddof", "p": "ord"}


def find_calling_line() -> tuple[str, int]:
    """Return the file and line number of the innermost frame of the user's program."""
    frame = sys._getframe(1)
    file = frame.f_code.co_filename
    libraries = _PACKAGE, _NUMPY
    while frame.f_back and file.startswith(libraries) and not file.startswith(_EXAMPLES):
        frame = frame.f_back
        file = frame.f_code.co_filename
    return file, frame.f_lineno


def add_location(error: CgprimerError) -> CgprimerError:
    """Return a copy of the error whose message shows the line of the user's program."""
    if hasattr(error, "located") or isinstance(error, SourceError):
        return error
    file, number = find_calling_line()
    text = linecache.getline(file, number).strip()
    message = f"{error.message}\n  {file}:{number}: {text}"
    located = type(error)(message.rstrip(": "), hint=error.hint)
    located.__dict__["located"] = True
    return located


def locate_errors(function: WrappedFunction) -> WrappedFunction:
    """Decorate a method to show the user's line in errors and to accept PyTorch's option names."""

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        """Call the method with numpy's option names and add the user's line to errors."""
        if kwargs:
            kwargs = {_NUMPY_NAMES.get(name, name): value for name, value in kwargs.items()}
        try:
            return function(*args, **kwargs)
        except CgprimerError as error:
            raise add_location(error) from None

    return wrapper  # type: ignore[return-value]
