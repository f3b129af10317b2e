"""How many gradients a second many workers bring: the simulator beside the formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count as counting
from typing import Any

from cgprimer.support.number_format import format_number
from cgprimer.training.distributed.delays import parse_delays
from cgprimer.training.distributed.protocols import Task, plan_protocol
from cgprimer.training.distributed.simulator import SimulatedTeam
from cgprimer.visualization.plots import slide

_WORKERS = (10, 100, 1_000, 10_000)
_GROUP, _SPARE = 10, 20  # workers of a group; of how many one is a backup worker
_EVENTS = 5_000  # gradients of a point, at least
_POINTS = 60  # of a formula's line


def scaling(message: float = 1e-3) -> slide.Figure:
    """Left exponential times and no messages; right a second each, and messages of so many."""
    counts = _WORKERS
    figure, look = slide.create_figure(
        False, None, "Gradients per second: simulated and by formula"
    )
    both: Any = figure.subplots(1, 2, sharey=True)
    words = "messages take no time", f"a message takes {format_number(message, 3)} s of the line"
    for axes, curves, word in zip(both, curves_of(message), words, strict=True):
        slide.style_axes(
            axes, look, x="workers", y="" if axes is both[1] else "gradients per second"
        )
        axes.set_title(word, **slide.text_style(look))
        for order, curve in enumerate(curves):
            style = slide.choose_curve_style(order, look)
            marker = {"marker": style.pop("marker"), "color": style["color"], "markersize": 11}
            between = _between(counts[0], counts[-1])
            formula = [curve.formula(k) for k in between]
            axes.plot(between, formula, **style, linewidth=2.4, label=curve.name)
            found = [curve.simulated(k, 0) for k in counts]
            axes.plot(counts, found, linestyle="", markerfacecolor="none", markeredgewidth=2.0,
                      **marker, label=f"_{curve.name}")  # fmt: skip
        slide.use_log_axis(axes, "x")
        slide.use_log_axis(axes, "y")
    both[0].plot([], [], linestyle="", marker="o", markersize=11, markerfacecolor="none",
                 markeredgewidth=2.0, color=look.ink, label="simulated")  # fmt: skip
    slide.draw_legend_below(figure, both[0], look)
    return figure


def _between(first: int, last: int) -> list[int]:
    """Numbers of workers for a curve, denser where there are few."""
    apart = (last / first) ** (1 / _POINTS)
    return sorted({round(first * apart**k) for k in range(_POINTS + 1)})


@dataclass(frozen=True)
class Curve:
    """A protocol: gradients a second that are used, of so many workers.

    Attributes:
        name: of the protocol.
        formula: workers to gradients a second.
        protocol, delays: what is simulated.
        own: workers to the protocol's own option.
        size: bytes of a message.
    """

    name: str
    formula: Callable[[int], float]
    protocol: str
    delays: str
    own: Callable[[int], dict[str, int]] = lambda k: {}
    size: int = 0

    def simulated(self, workers: int, seed: int) -> float:
        """What the simulator says, over some thousands of gradients.

        >>> round(curves_of(0.1)[1][1].simulated(5, 0), 2)
        4.17
        """
        made = plan_protocol(self.protocol, workers, **self.own(workers))
        tasks = (Task(k, 0, k, k + 1) for k in counting())
        delays = parse_delays(self.delays, workers)
        team = SimulatedTeam(workers, tasks, lambda v, t: (0.0, 0.0), delays, seed, self.size)
        team.set_parameters(0.0, 0)
        going, used, begun = made.gather_gradients(team), 0, (0, 0.0)
        # What is under way at first has no past: asynchronous workers are counted from then on.
        first = 2 * workers if self.protocol in ("async", "groups") else 0
        for version in counting(1):
            used += len(next(going))
            team.set_parameters(0.0, version)
            if used <= first:
                begun = used, team.now
            elif used - begun[0] >= max(_EVENTS, 3 * workers):
                break
        return (used - begun[0]) / (team.now - begun[1])


def curves_of(message: float) -> tuple[list[Curve], list[Curve]]:
    """The curves without messages, and with them."""

    def spare(k: int) -> int:
        return max(1, k // _SPARE)

    law = "exponential"
    line = f"constant,network({message!r})"
    without = [
        Curve("sync", lambda k: k / harmonic(k), "sync", law),
        Curve("async", float, "async", law),
        Curve("backup, 1 spare in 20",
              lambda k: (k - spare(k)) / (harmonic(k) - harmonic(spare(k))),
              "backup", law, lambda k: {"backup": spare(k)}),
        Curve("groups of 10", lambda k: k / harmonic(_GROUP), "groups", law,
              lambda k: {"groups": k // _GROUP}),
    ]  # fmt: skip
    with_line = [
        Curve("sync", lambda k: k / (1 + (k + 1) * message), "sync", line, size=1),
        Curve("async", lambda k: min(k / (1 + 2 * message), 1 / message), "async", line, size=1),
    ]
    return without, with_line


def harmonic(n: int) -> float:
    """The sum of 1/k for k from 1 to n: the mean of the largest of n exponential times.

    >>> harmonic(4)
    2.083333333333333
    """
    return sum(1 / k for k in range(1, n + 1))
