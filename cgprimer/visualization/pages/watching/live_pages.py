"""What is shown of files that change: the last page that could be made, and what is wrong since."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

from cgprimer.errors import CgprimerError

_PATIENCE = 10  # looks; while an editor saves, a file may be gone, or empty, for a moment
_Stamp = tuple[int, int, int] | None


class Live:
    """A page, made anew when a file that it was made from has changed.

    Args:
        make: makes the page, or raises what is wrong.
        files: the files that ``make`` has read so far; it may add to them as it reads.

    Attributes:
        page: the last page that could be made; empty before the first.
        error: what is wrong with the files as they stand; empty where nothing is.
        version: how many different pages there were.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.cg")
    ...     _ = path.write_text("one")
    ...     live = Live(path.read_text, [str(path)])
    ...     first = live.look(), live.page
    ...     _ = path.write_text("another")
    ...     first, [live.look() for _ in range(3)], live.page, live.version
    ((True, 'one'), [False, True, False], 'another', 2)
    """

    def __init__(self, make: Callable[[], str], files: Collection[str]) -> None:
        self.page = self.error = ""
        self.version = self._waited = 0
        self._make, self._files = make, files
        self._read: dict[str, _Stamp] | None = None  # files as they were when they were read
        self._last: dict[str, _Stamp] = {}  # and at the last look

    def look(self) -> bool:
        """Make the page anew if a file has changed; whether what is shown is another one.

        A file that is being written is left alone until two looks find it the same.
        """
        now = {name: _stamp(name) for name in self._files}
        if self._read is not None:
            if now == self._read:
                self._waited = 0
                return False
            steady, self._last = now == self._last, now
            whole = all(stamp and stamp[1] for stamp in now.values())
            self._waited += 1
            if not (steady and whole) and self._waited < _PATIENCE:
                return False
        before, self._waited = (self.page, self.error), 0
        try:
            self.page, self.error = self._make(), ""
        except CgprimerError as error:
            self.error = str(error)
        except Exception as error:  # a defect of ours must not end a lecture
            self.error = f"this is a defect of cgprimer: {type(error).__name__}: {error}"
        self._read = {name: _stamp(name) for name in self._files} | now
        self.version += self.page != before[0]
        return (self.page, self.error) != before


def _stamp(name: str) -> _Stamp:
    """What changes with a file, also where an editor puts another one in its place."""
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
