"""Entry points of installed packages, for the registries of :mod:`cgprimer.support.plugins`.

Entry points are read from the metadata files directly: importing `importlib.metadata` takes 15 to
30 ms, as long as a first gradient.

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
    """Return the locations ``module:attribute`` of entry points, keyed by group and then by name.

    The result equals ``importlib.metadata.entry_points()``, except that extras and packages in
    archives are ignored.
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
    """Parse an ``entry_points.txt`` file and add its entries; existing entries take precedence."""
    group: dict[str, str] = {}
    for line in map(str.strip, lines):
        name, equals, location = line.partition("=")
        if line.startswith("["):
            group = groups.setdefault(line[1:].rstrip("] "), {})
        elif equals and not line.startswith(("#", ";")):
            group.setdefault(name.strip(), location.partition("[")[0].replace(" ", ""))
