"""The memory of values saved for the backward pass, during the forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from cgprimer.errors import UsageError
from cgprimer.recording.graph_memory import Memory
from cgprimer.visualization.plots import slide

_UNITS = ("bytes", "kB", "MB", "GB")


def memory(
    kept: Memory | Mapping[str, Memory], *, dark: bool = False, title: str | None = None
) -> slide.Figure:
    """Plot the memory saved for the backward pass, in bytes, as the forward pass proceeds.

    Args:
        kept: result of :func:`cgprimer.memory`, or several results keyed by name.

    Raises:
        UsageError: an object of another type.

    >>> from cgprimer import Value, memory as kept_by
    >>> x = Value([1.0, 2.0])
    >>> memory({"tanh": kept_by(x.tanh().sum())}).axes[0].get_ylabel()
    'memory, in bytes'
    """
    memories = kept if isinstance(kept, Mapping) else {"": kept}
    if not memories or not all(isinstance(entry, Memory) for entry in memories.values()):
        raise UsageError(
            "plot.memory() requires results of cgprimer.memory()",
            hint="pass results: plot.memory("
            '{"saved": cgprimer.memory(a), "again": cgprimer.memory(b)})',
        )
    largest = max(entry.kept for entry in memories.values())
    power = next((p for p in range(3) if largest < 10 * 1000 ** (p + 1)), 3)
    unit = 1000**power
    figure, axes, look = slide.create_plot(
        dark, title, "Memory saved for the backward pass",
        x="saved values, in the order of computation", y=f"memory, in {_UNITS[power]}",
    )  # fmt: skip
    for order, (name, entry) in enumerate(memories.items()):
        sizes = [0.0, *accumulate(row.bytes / unit for row in entry.rows if not row.given)]
        style = slide.choose_line_style(order, look, len(sizes))
        total = f"{entry.kept:,} bytes" if not power else f"{sizes[-1]:,.1f} {_UNITS[power]}"
        label = f"{slide.format_label(name)}: {total}" if name else total
        axes.plot(sizes, drawstyle="steps-post", linewidth=2.6, label=label, **style)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    slide.use_linear_axis(axes, "x", integers=True)
    slide.use_linear_axis(axes, "y")
    slide.draw_legend_below(figure, axes, look)
    return figure
