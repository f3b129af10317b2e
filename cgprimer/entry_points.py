"""Entry points of installed packages, read without importing anything else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache


@cache
def entry_points() -> dict[str, dict[str, str]]:
    """Entry points of the packages on the path: group to name to ``module:attribute``.

    As ``importlib.metadata.entry_points`` finds them, in folders; to import that module alone takes
    longer than a first gradient.
    """
    found: dict[str, dict[str, str]] = {}
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError):  # an archive, or not there
            for package in sorted(os.listdir(folder or ".")):
                if package.endswith((".dist-info", ".egg-info")):
                    with suppress(OSError):  # most packages have none
                        place = os.path.join(folder, package, "entry_points.txt")
                        with open(place, encoding="utf-8", errors="replace") as file:
                            _read(file, found)
    return found


def _read(lines: Iterator[str], found: dict[str, dict[str, str]]) -> None:
    """What a file of entry points says; of two packages the first on the path wins."""
    group: dict[str, str] = {}
    for line in map(str.strip, lines):
        name, equals, place = line.partition("=")
        if line.startswith("["):
            group = found.setdefault(line[1:].rstrip("] "), {})
        elif equals and not line.startswith(("#", ";")):
            group.setdefault(name.strip(), place.partition("[")[0].strip())
