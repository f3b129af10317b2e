"""Pages that follow files: the last page that could be rendered, and the current error."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

from cgprimer.errors import CgprimerError

_MAX_CHECKS = 10  # while an editor saves, a file may be missing or empty for a moment
_FileStamp = tuple[int, int, int] | None


class LivePage:
    """A page that is rendered again whenever one of its files changes.

    Args:
        render: renders the page, or raises an error.
        files: the files that ``render`` has read so far; it may add to them.

    Attributes:
        page: the last page that could be rendered; empty before the first.
        error: the error in the current files; empty if there is none.
        version: the number of different pages so far.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.cg")
    ...     _ = path.write_text("one")
    ...     live = LivePage(path.read_text, [str(path)])
    ...     first = live.refresh(), live.page
    ...     _ = path.write_text("another")
    ...     first, [live.refresh() for _ in range(3)], live.page, live.version
    ((True, 'one'), [False, True, False], 'another', 2)
    """

    def __init__(self, render: Callable[[], str], files: Collection[str]) -> None:
        self.page = self.error = ""
        self.version = self._n_checks = 0
        self._render, self._files = render, files
        self._read: dict[str, _FileStamp] | None = None  # files when they were read
        self._last: dict[str, _FileStamp] = {}  # files at the last check

    def refresh(self) -> bool:
        """Render the page again if a file has changed; return whether the page or error changed.

        A file that is being written is read after two checks find the same content.
        """
        stamps = {name: _read_file_stamp(name) for name in self._files}
        if self._read is not None:
            if stamps == self._read:
                self._n_checks = 0
                return False
            is_stable, self._last = stamps == self._last, stamps
            is_complete = all(stamp and stamp[1] for stamp in stamps.values())
            self._n_checks += 1
            if not (is_stable and is_complete) and self._n_checks < _MAX_CHECKS:
                return False
        previous, self._n_checks = (self.page, self.error), 0
        try:
            self.page, self.error = self._render(), ""
        except CgprimerError as error:
            self.error = str(error)
        except Exception as error:  # a defect of the package must not end a lecture
            self.error = f"this is a defect of cgprimer: {type(error).__name__}: {error}"
        self._read = {name: _read_file_stamp(name) for name in self._files} | stamps
        self.version += self.page != previous[0]
        return (self.page, self.error) != previous


def _read_file_stamp(name: str) -> _FileStamp:
    """Return a file's modification time, size and inode number, or None if it does not exist."""
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
