"""Memory: how what is kept for the backward pass grows while the forward pass goes on."""

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
    """The bytes that are kept after each value of the forward pass, in the order of computing.

    Args:
        kept: what :func:`cgprimer.memory` found; several by their names, side by side.

    Raises:
        UsageError: it is nothing of the kind.

    >>> from cgprimer import Value, memory as kept_by
    >>> x = Value([1.0, 2.0])
    >>> memory({"tanh": kept_by(x.tanh().sum())}).axes[0].get_ylabel()
    'kept so far, bytes'
    """
    several = kept if isinstance(kept, Mapping) else {"": kept}
    if not several or not all(isinstance(one, Memory) for one in several.values()):
        raise UsageError(
            "plot.memory shows what cgprimer.memory found",
            hint='plot.memory({"saved": cgprimer.memory(a), "again": cgprimer.memory(b)})',
        )
    largest = max(one.kept for one in several.values())
    power = next((p for p in range(3) if largest < 10 * 1000 ** (p + 1)), 3)
    unit = 1000**power
    figure, axes, look = slide.framed(
        dark, title, "What is kept for the backward pass",
        x="values kept, in the order of computing", y=f"kept so far, {_UNITS[power]}",
    )  # fmt: skip
    for order, (name, one) in enumerate(several.items()):
        sizes = [0.0, *accumulate(row.bytes / unit for row in one.rows if not row.given)]
        style = slide.line_style(order, look, len(sizes))
        total = f"{one.kept:,} bytes" if not power else f"{sizes[-1]:,.1f} {_UNITS[power]}"
        label = f"{slide.plain(name)}: {total}" if name else total
        axes.plot(sizes, drawstyle="steps-post", linewidth=2.6, label=label, **style)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    slide.linear_axis(axes, "x", whole=True)
    slide.linear_axis(axes, "y")
    slide.legend_below(figure, axes, look)
    return figure
