"""Entry points of installed packages, for the registries of :mod:`cgprimer.support.plugins`.

They are read from the metadata files directly: importing `importlib.metadata` takes 15 to 30 ms,
as long as a first gradient.

Source: the Python Packaging User Guide, "Creating and discovering plugins".
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache


@cache
def read_entry_points() -> dict[str, dict[str, str]]:
    """Return the entry points of installed packages: for each group and name ``module:attribute``.

    The result is that of ``importlib.metadata.entry_points``, except that packages in archives
    are not read.
    """
    groups: dict[str, dict[str, str]] = {}
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError):  # an archive or a missing folder
            for package in sorted(os.listdir(folder or ".")):
                if package.endswith((".dist-info", ".egg-info")):
                    with suppress(OSError):  # most packages have no entry points
                        path = os.path.join(folder, package, "entry_points.txt")
                        with open(path, encoding="utf-8", errors="replace") as file:
                            _parse_entry_points(file, groups)
    return groups


def _parse_entry_points(lines: Iterable[str], groups: dict[str, dict[str, str]]) -> None:
    """Add the entry points of a file to those of packages that come earlier on the path."""
    group: dict[str, str] = {}
    for line in map(str.strip, lines):
        name, equals, location = line.partition("=")
        if line.startswith("["):
            group = groups.setdefault(line[1:].rstrip("] "), {})
        elif equals and not line.startswith(("#", ";")):
            group.setdefault(name.strip(), location.partition("[")[0].strip())
