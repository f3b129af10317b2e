"""Ensembles: members trained on bootstrap samples, from other starts, or of other models.

The members' outputs are averaged; their parameters can be averaged, too, to compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from cgprimer.core.graph import check_graph
from cgprimer.errors import DataError, UsageError, pluralize
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.type_checks import check_functions
from cgprimer.support.validation import check_integer
from cgprimer.training.data import Dataset, require_in_memory
from cgprimer.training.loop import train
from cgprimer.training.losses import beside_outputs, data_for
from cgprimer.training.metrics import beside_labels, classes_of, side_by_side
from cgprimer.training.model_variations import (
    GRAPH,
    combinations,
    matched,
    output_shapes,
    renamed_for,
)
from cgprimer.training.runs import TrainingRun, differences
from cgprimer.training.settings import SETTING_NAMES, create_settings
from cgprimer.training.sweeps import at_once

Array = Any
_VARIED = (*(name for name in SETTING_NAMES if name not in ("seed", "loss")), GRAPH)


@dataclass(frozen=True, slots=True)
class Spread:
    """The errors of members, and of their average.

    An error is a prediction minus its target, so squared errors add up to those of the average:
    that is ``v/K + c(K-1)/K`` for K members, exactly, where v and c are means over the samples
    measured.

    Attributes:
        members: K, how many they are.
        variance: v, the mean squared error of a member; unit: that of the target, squared.
        covariance: c, the mean product of the errors of two different members.
        measured: the mean squared error of the average.
    """

    members: int
    variance: float
    covariance: float
    measured: float

    @property
    def expected(self) -> float:
        """``v/K + c(K-1)/K``: what averaging leaves of v; v/K where errors have nothing in common.

        Source: Goodfellow, Bengio, Courville 2016, "Deep learning", section 7.11.

        >>> Spread(10, 1.0, 0.25, 0.325).expected, Spread(10, 1.0, 0.0, 0.1).expected
        (0.325, 0.1)
        """
        others = self.members - 1
        return self.variance / self.members + self.covariance * others / self.members


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """Runs on samples of one dataset, of one graph or of several.

    Attributes:
        runs: the members.
        drawn: for each member the numbers of the samples that it was trained on, with repeats.
        data: what they were drawn from.
        graph: the graph that names the columns; outputs of other graphs are matched by position.
        varied: for each member its graph's name and settings, where these vary.
    """

    runs: tuple[TrainingRun, ...]
    drawn: tuple[Array, ...]
    data: Dataset
    graph: ExpressionGraph
    varied: tuple[dict[str, Any], ...]

    def predictions(self, data: Dataset | Mapping[str, Any]) -> dict[str, Array]:
        """The outputs of each member; arrays of shape (members, samples, ...)."""
        found = [self._outputs(run, data) for run in self.runs]
        return {name: np.stack([one[name] for one in found]) for name in found[0]}

    def _outputs(self, run: TrainingRun, data: Dataset | Mapping[str, Any]) -> dict[str, Array]:
        """Return a member's outputs under the names that the outputs of :attr:`graph` have."""
        graph = run.known_graph
        if isinstance(data, Mapping) and graph is not self.graph:
            data = Dataset.from_arrays(data)
        outputs = run.predict(renamed_for(graph, data) if isinstance(data, Dataset) else data)
        if graph is self.graph:
            return outputs
        named = matched(outputs, output_shapes(self.graph))
        assert named is not None  # `ensemble` has compared the numbers of outputs
        return {name: named[name] for name in self.graph.outputs}

    def predict(self, data: Dataset | Mapping[str, Any]) -> dict[str, Array]:
        """The average of the members' outputs, a column for each.

        Raises:
            DataError: an input has no column.
        """
        return {name: each.mean(axis=0) for name, each in self.predictions(data).items()}

    def vote(self, data: Dataset | Mapping[str, Any]) -> Array:
        """The class that most members predict; a tie goes to the lowest label.

        Classes are those of the targets that the members were trained on.

        Raises:
            DataError: the targets are no classes, or an input has no column.
        """
        found = [classes_of(one, self.data.targets) for one in self._compared(data)]
        labels = found[0][0]
        return np.asarray(labels)[majority(np.stack([chosen for _, chosen in found]))]

    def _compared(self, data: Dataset | Mapping[str, Any]) -> list[dict[str, Array]]:
        """The outputs of each member beside targets: of logits the probabilities."""
        return [beside_labels(self._outputs(r, data), r.settings["loss"]) for r in self.runs]

    def spread(self, data: Dataset) -> Spread:
        """The errors of the members and of their average on samples that should be new to them."""
        return spread_of(np.stack(self._errors(data, self._compared(data))))

    def _errors(self, data: Dataset, outputs: Sequence[dict[str, Array]]) -> list[Array]:
        """Return the errors of outputs, as they are compared with labels, in a row for each."""
        data = renamed_for(self.graph, data)
        wanted = beside_outputs(self.graph, self.runs[0].settings["loss"], data)
        rows = side_by_side(wanted, wanted)
        return [(side_by_side(one, wanted) - rows).ravel() for one in outputs]

    def squared_errors(self, data: Dataset) -> list[float]:
        """The mean squared error of each member."""
        return [float((one**2).mean()) for one in self._errors(data, self._compared(data))]

    def averaged_weights(self) -> TrainingRun:
        """One model whose parameters are the means of the members' parameters.

        Its outputs are not the average of the members' outputs unless the graph is linear in its
        parameters: hidden units can be exchanged, so members that compute nearly the same
        function can have parameters whose mean computes quite another one.

        Raises:
            UsageError: the members have different graphs, or columns normalized differently.

        >>> import cgprimer
        >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
        >>> data = cgprimer.make_dataset(graph, samples=50, noise=1.0)
        >>> bag = ensemble(graph, data, members=3)
        >>> mean = bag.averaged_weights().predict(data)["xw"]
        >>> bool(np.allclose(mean, bag.predict(data)["xw"]))
        True
        """
        first = self.runs[0]
        for run in self.runs[1:]:
            if differences(run, first.known_graph):
                hint = "members of one graph; predict() averages the outputs of any members"
                raise UsageError("cannot average the parameters of different graphs", hint=hint)
            if run.scales.keys() != first.scales.keys() or any(
                not np.array_equal(run.scales[key], first.scales[key]) for key in first.scales
            ):
                hint = "train without normalize, or without bootstrap samples"
                what = "cannot average parameters of members whose columns are normalized"
                raise UsageError(f"{what} differently", hint=hint)
        means = [
            {n: np.mean([getattr(r, part)[n] for r in self.runs], axis=0)[()] for n in values}
            for part, values in (("parameters", first.parameters), ("statistics", first.statistics))
        ]
        return TrainingRun(
            means[0], {**means[0]}, first.truth, first.settings,
            statistics=means[1], scales=first.scales, graph=first.graph,
        )  # fmt: skip

    def averaged_weights_error(self, data: Dataset) -> float:
        """The mean squared error of :meth:`averaged_weights`; errors are those of that method."""
        run = self.averaged_weights()
        outputs = beside_labels(self._outputs(run, data), run.settings["loss"])
        return float((self._errors(data, [outputs])[0] ** 2).mean())

    def out_of_bag(self) -> dict[str, float]:
        """Errors over the samples that a member has not seen, by the members that have not.

        Returns:
            ``squared-error``, the mean over samples and outputs of that of the average; where the
            targets are classes ``accuracy``, of the vote; and ``samples``, how many were left out
            by some member: of n samples a member draws all but about 37 %.

        Source: Breiman 1996, "Out-of-bag estimation".
        """
        unseen = np.stack([~np.isin(np.arange(len(self.data)), rows) for rows in self.drawn])
        some = unseen.any(axis=0)
        if not some.any():
            raise DataError("every member has seen every sample", hint="more members, or samples")
        found: dict[str, float] = {"samples": int(some.sum())}
        left, total = self.data.where(np.flatnonzero(some)), 0.0
        unseen = unseen[:, some]
        members = self._compared(left)
        predictions = {n: np.stack([one[n] for one in members]) for n in members[0]}
        for name, each in predictions.items():
            weight = unseen.reshape(*unseen.shape, *[1] * (each.ndim - 2))
            mean = (each * weight).sum(axis=0) / weight.sum(axis=0)
            total += float(((mean - left.targets[name]) ** 2).mean())
        found["squared-error"] = total / len(predictions)
        try:
            labels, true = classes_of(left.targets, self.data.targets)
        except DataError:  # numbers
            return found
        each = np.stack([classes_of(one, self.data.targets)[1] for one in members])
        votes = majority(each, unseen, len(labels))
        return found | {"accuracy": float((votes == true).mean())}

    def __repr__(self) -> str:
        return f"<Ensemble of {len(self.runs)} runs on {len(self.data):,} samples>"


def ensemble(
    graph: ExpressionGraph,
    dataset: Any,
    *,
    members: int = 10,
    vary: Mapping[str, Any] | None = None,
    bootstrap: bool = True,
    seed: int = 0,
    jobs: int | None = None,
    on_run: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Ensemble:
    """Train members on bootstrap samples: as many samples as there are, drawn with repeats.

    Member k draws its samples, its start and its order from the seeds after ``seed``.

    Args:
        graph, dataset: as in :func:`cgprimer.train`.
        members: how many.
        vary: lists of settings, and ``graph``, a mapping of names to graphs, as in
            :func:`cgprimer.sweep`. Members take the combinations in turn.
        bootstrap: whether members are trained on bootstrap samples; otherwise on all samples, so
            that they differ in their start, their order of the samples and what varies.
        seed: of all that is random.
        jobs: how many runs at once; as many as there are cores unless given.
        on_run: called after each run with how many are done, of how many.
        settings: of all runs, as in :func:`cgprimer.train`.

    Raises:
        UsageError, DataError: as :func:`cgprimer.train`; a member diverged; fewer members than
            combinations.

    Source: Breiman 1996, "Bagging predictors".

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=200, noise=1.0)
    >>> bag = ensemble(graph, data, members=4)
    >>> found = bag.spread(cgprimer.make_dataset(graph, samples=200, noise=1.0, seed=1))
    >>> bool(found.measured < found.variance), abs(found.measured - found.expected) < 1e-12
    (True, True)
    """
    check_graph(graph)
    check_functions(on_run=on_run)
    members = check_integer("members", members, minimum=1)
    seed = check_integer("the seed", seed)
    varied = list(combinations(vary, _VARIED)) if vary else [{}]
    if len(varied) > members:
        hint = f"members={len(varied)} (--members {len(varied)}) trains one of each"
        raise UsageError(f"{len(varied)} models vary in {members} members", hint=hint)
    given = {name: value for name, value in settings.items() if name in SETTING_NAMES}
    dataset, checked = data_for(graph, dataset, create_settings(given)[0])
    dataset = require_in_memory(dataset, "bootstrap samples are drawn from data in memory")
    graphs = {None: graph, **(vary or {}).get(GRAPH, {})}
    for one in graphs.values():
        _check_outputs(graph, one)
    for one in varied:  # mistakes are reported before any run
        model = graphs[one.get(GRAPH)]
        own = {name: value for name, value in one.items() if name in SETTING_NAMES}
        train(model, renamed_for(model, dataset), seed=seed, **(settings | own | {"epochs": 0}))
    dataset = renamed_for(graph, dataset)
    dataset = replace(dataset, targets=beside_outputs(graph, checked.loss, dataset))
    seeds = np.random.SeedSequence(seed).spawn(members)
    count, every = len(dataset), np.arange(len(dataset))
    drawn = [
        np.random.default_rng(one).integers(0, count, count) if bootstrap else every
        for one in seeds
    ]
    calls = []
    for k, rows in enumerate(drawn):
        one = varied[k % len(varied)]
        model = graphs[one.get(GRAPH)]
        own = {name: value for name, value in one.items() if name in SETTING_NAMES}
        part = renamed_for(model, dataset.where(rows))
        calls.append(partial(train, model, part, seed=seed + k, **(settings | own)))
    runs = at_once(calls, jobs, on_run)
    for place, run in runs.items():
        if run.stopped == "diverged":
            hint = "try a smaller learning rate (--learning-rate)"
            raise UsageError(f"member {place + 1} diverged: {run.reason}", hint=hint)
    return Ensemble(
        tuple(runs.values()), tuple(drawn[k] for k in runs), dataset, graph,
        tuple(varied[k % len(varied)] for k in runs),
    )  # fmt: skip


def _check_outputs(graph: ExpressionGraph, other: ExpressionGraph) -> None:
    """Raise UsageError if the outputs of two graphs cannot be averaged."""
    sizes = [sum(map(prod, output_shapes(one).values())) for one in (graph, other)]
    if sizes[0] != sizes[1]:
        what = f"{other.source.name} has {pluralize(sizes[1], 'output value')} per sample"
        raise UsageError(f"{what}, {graph.source.name} {sizes[0]}: they cannot be averaged")


def majority(chosen: Array, counted: Array | None = None, classes: int | None = None) -> Array:
    """For each sample the class that most members have chosen; ties go to the lowest.

    Args:
        chosen: numbers of classes from 0; shape (members, samples).
        counted: whose votes count; of the same shape; all unless given.
        classes: how many there are; as many as were chosen unless given.

    >>> majority(np.array([[0, 2, 1], [1, 2, 0], [1, 0, 2]])).tolist()
    [1, 2, 0]
    """
    classes = int(chosen.max()) + 1 if classes is None else classes
    votes = chosen[..., None] == np.arange(classes)
    if counted is not None:
        votes = votes & counted[..., None]
    found: Array = votes.sum(axis=0).argmax(axis=-1)  # the first of equal ones
    return found


def spread_of(errors: Array) -> Spread:
    """The spread of errors of shape (members, samples).

    >>> spread_of(np.array([[1.0, -1.0], [1.0, 1.0]]))
    Spread(members=2, variance=1.0, covariance=0.0, measured=0.5)
    """
    members = len(errors)
    products = errors @ errors.T / errors.shape[1]
    own = float(np.trace(products))
    between = float(products.sum()) - own
    pairs = members * (members - 1)
    measured = float((errors.mean(axis=0) ** 2).mean())
    return Spread(members, own / members, between / pairs if pairs else 0.0, measured)
