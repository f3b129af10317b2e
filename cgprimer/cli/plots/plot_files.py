"""Writing of plots to files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cgprimer.cli.common import note
from cgprimer.support.files import write_generated_file


def write_plot(
    plot: Callable[..., Any],
    output: str,
    *inputs: Any,
    creators: Mapping[str, Callable[..., Any]] | None = None,
    **options: Any,
) -> None:
    """Create a plot and write it to a file.

    Args:
        plot: a function of :mod:`cgprimer.plot`, which returns a figure.
        output: the path of the file.
        *inputs: positional arguments of the function.
        creators: functions with the same arguments that create the contents of other files, keyed
            by file format.
        **options: keyword arguments of the function; options that are not given are left out.
    """
    from cgprimer.visualization.diagrams.figure_files import (
        FORMATS,
        check_picture_path,
        save_figure,
    )

    path, creators = Path(output), creators or {}
    file_format = check_picture_path(path, (*FORMATS, *creators))
    arguments = {name: value for name, value in options.items() if value not in (None, (), {})}
    if file_format in creators:
        write_generated_file(path, creators[file_format](*inputs, **arguments))
    else:
        save_figure(plot(*inputs, **arguments), path)
    note(f"wrote {output}")
