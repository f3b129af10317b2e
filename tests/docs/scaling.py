"""Plot how many gradients per second many workers compute: simulated, and by formulas."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

from cgprimer.training.distributed.delays import parse_delays
from cgprimer.training.distributed.protocols import Task, plan_protocol
from cgprimer.training.distributed.simulator import SimulatedTeam
from cgprimer.visualization.plots import slide

WORKERS = (10, 100, 1_000, 10_000)
MESSAGE = 1e-3  # seconds of the line per message
GRADIENTS = 5_000  # of a simulated point, at least
GROUP = 10  # workers of a group


class Curve(NamedTuple):
    """A protocol, and the formula for the gradients per second of a number of workers."""

    name: str
    protocol: str
    delays: str
    formula: Callable[[int], float]
    options: Callable[[int], dict[str, int]] = lambda k: {}
    bytes: int = 0  # of a message

    def simulate(self, workers: int) -> float:
        """Return the gradients per second of the simulator."""
        protocol = plan_protocol(self.protocol, workers, **self.options(workers))
        tasks = (Task(k, 0, k, k + 1) for k in count())
        delays = parse_delays(self.delays, workers)
        team = SimulatedTeam(workers, tasks, lambda v, t: (0.0, 0.0), delays, 0, self.bytes)
        team.set_parameters(0.0, 0)
        rounds, used, begin = protocol.gather_gradients(team), 0, (0, 0.0)
        # At first, no worker is busy, so asynchronous workers are counted later.
        first = 2 * workers if self.protocol in ("async", "groups") else 0
        for version in count(1):
            used += len(next(rounds))
            team.set_parameters(0.0, version)
            if used <= first:
                begin = used, team.now
            elif used - begin[0] >= max(GRADIENTS, 3 * workers):
                break
        return (used - begin[0]) / (team.now - begin[1])


def harmonic(n: int) -> float:
    """Return the sum of 1/k for k up to n: the mean of the largest of n exponential times."""
    return sum(1 / k for k in range(1, n + 1))


def spare(k: int) -> int:
    """Return the number of backup workers."""
    return max(1, k // 20)


LINE = f"constant,network({MESSAGE!r})"
CURVES = {
    "messages take no time": [
        Curve("sync", "sync", "exponential", lambda k: k / harmonic(k)),
        Curve("async", "async", "exponential", float),
        Curve("backup, 1 spare in 20", "backup", "exponential",
              lambda k: (k - spare(k)) / (harmonic(k) - harmonic(spare(k))),
              lambda k: {"backup": spare(k)}),
        Curve("groups of 10", "groups", "exponential", lambda k: k / harmonic(GROUP),
              lambda k: {"groups": k // GROUP}),
    ],
    "a message takes 0.001 s of the line": [
        Curve("sync", "sync", LINE, lambda k: k / (1 + (k + 1) * MESSAGE), bytes=1),
        Curve("async", "async", LINE, lambda k: min(k / (1 + 2 * MESSAGE), 1 / MESSAGE), bytes=1),
    ],
}  # fmt: skip


def scaling() -> slide.Figure:
    """Draw exponential times without messages, and times of a second with messages."""
    figure, look = slide.create_figure(
        False, None, "Gradients per second: simulated and by formula"
    )
    both: Any = figure.subplots(1, 2, sharey=True)
    ring = {"linestyle": "", "markersize": 11, "markerfacecolor": "none", "markeredgewidth": 2.0}
    numbers = sorted({round(10 ** (1 + k / 20)) for k in range(61)})
    for axes, (title, curves), y in zip(both, CURVES.items(), ("gradients per second", ""),
                                        strict=True):  # fmt: skip
        slide.style_axes(axes, look, x="workers", y=y)
        axes.set_title(title, **slide.text_style(look))
        for order, curve in enumerate(curves):
            style = slide.choose_curve_style(order, look)
            marker = {"marker": style.pop("marker"), "color": style["color"], **ring}
            formula = list(map(curve.formula, numbers))
            axes.plot(numbers, formula, **style, linewidth=2.4, label=curve.name)
            simulated = list(map(curve.simulate, WORKERS))
            axes.plot(WORKERS, simulated, **marker, label=f"_{curve.name}")
        slide.use_log_axis(axes, "x")
        slide.use_log_axis(axes, "y")
    both[0].plot([], [], marker="o", color=look.ink, label="simulated", **ring)
    slide.draw_legend_below(figure, both[0], look)
    return figure
