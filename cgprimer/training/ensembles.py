"""Ensembles: members trained on bootstrap samples, from different starts, or as different models.

The outputs of the members are averaged. For comparison, their parameters can be averaged instead.
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
from cgprimer.training.losses import align_targets, load_training_data
from cgprimer.training.metrics import convert_to_probabilities, find_classes, stack_elements
from cgprimer.training.model_variations import (
    GRAPH,
    find_output_shapes,
    iterate_combinations,
    match_columns,
    match_columns_to_graph,
)
from cgprimer.training.runs import TrainingRun, explain_difference
from cgprimer.training.settings import SETTING_NAMES, create_settings
from cgprimer.training.sweeps import run_in_parallel

Array = Any
_VARIED = (*(name for name in SETTING_NAMES if name not in ("seed", "loss")), GRAPH)


@dataclass(frozen=True, slots=True)
class Spread:
    """Statistics of the prediction errors of an ensemble's members and of their average.

    An error is a prediction minus its target. For K members the mean squared error of the average
    is exactly ``v/K + c(K-1)/K``, where v and c are means over the samples.

    Attributes:
        members: K, the number of members.
        variance: v, the mean squared error of a member, in the target's unit squared.
        covariance: c, the mean product of the errors of two different members.
        measured: the mean squared error of the average.
    """

    members: int
    variance: float
    covariance: float
    measured: float

    @property
    def expected(self) -> float:
        """The expected mean squared error of the average, ``v/K + c(K-1)/K``.

        Source: Goodfellow, Bengio, Courville 2016, "Deep learning", section 7.11.

        >>> Spread(10, 1.0, 0.25, 0.325).expected, Spread(10, 1.0, 0.0, 0.1).expected
        (0.325, 0.1)
        """
        others = self.members - 1
        return self.variance / self.members + self.covariance * others / self.members


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """An ensemble of training runs, for one or more graphs, on samples of one dataset.

    Attributes:
        runs: the members.
        drawn: for each member the indices of its training samples, with repetitions.
        data: the dataset that the samples were drawn from.
        graph: the graph that names the columns; outputs of other graphs are matched by position.
        varied: for each member the settings that vary, and the name of its graph if that varies.
    """

    runs: tuple[TrainingRun, ...]
    drawn: tuple[Array, ...]
    data: Dataset
    graph: ExpressionGraph
    varied: tuple[dict[str, Any], ...]

    def predictions(self, data: Dataset | Mapping[str, Any]) -> dict[str, Array]:
        """Compute the outputs of all members as arrays of shape (members, samples, ...)."""
        outputs = [self._compute_outputs(run, data) for run in self.runs]
        return {name: np.stack([member[name] for member in outputs]) for name in outputs[0]}

    def _compute_outputs(
        self, run: TrainingRun, data: Dataset | Mapping[str, Any]
    ) -> dict[str, Array]:
        """Compute the outputs of a member, with the names of the outputs of :attr:`graph`."""
        graph = run.known_graph
        if isinstance(data, Mapping) and graph is not self.graph:
            data = Dataset.from_arrays(data)
        outputs = run.predict(
            match_columns_to_graph(graph, data) if isinstance(data, Dataset) else data
        )
        if graph is self.graph:
            return outputs
        renamed = match_columns(outputs, find_output_shapes(self.graph))
        assert renamed is not None  # `ensemble` has compared the numbers of outputs
        return {name: renamed[name] for name in self.graph.outputs}

    def predict(self, data: Dataset | Mapping[str, Any]) -> dict[str, Array]:
        """Compute the average of the members' outputs, one column per output.

        Raises:
            DataError: the column of an input is missing.
        """
        return {name: outputs.mean(axis=0) for name, outputs in self.predictions(data).items()}

    def vote(self, data: Dataset | Mapping[str, Any]) -> Array:
        """Return the class that most members predict; ties go to the lowest label.

        The classes are those of the targets that the members were trained on.

        Raises:
            DataError: the targets are not classes, or the column of an input is missing.
        """
        predicted = [
            find_classes(outputs, self.data.targets) for outputs in self._normalize_outputs(data)
        ]
        labels = predicted[0][0]
        return np.asarray(labels)[find_majority(np.stack([indices for _, indices in predicted]))]

    def _normalize_outputs(self, data: Dataset | Mapping[str, Any]) -> list[dict[str, Array]]:
        """Compute the outputs of each member, with logits converted to probabilities."""
        return [
            convert_to_probabilities(self._compute_outputs(r, data), r.settings["loss"])
            for r in self.runs
        ]

    def spread(self, data: Dataset) -> Spread:
        """Compute variance and covariance of the members' errors, preferably on test samples."""
        return compute_spread(np.stack(self._compute_errors(data, self._normalize_outputs(data))))

    def _compute_errors(self, data: Dataset, outputs: Sequence[dict[str, Array]]) -> list[Array]:
        """Return the prediction errors of each member, as one vector per member."""
        data = match_columns_to_graph(self.graph, data)
        targets = align_targets(self.graph, self.runs[0].settings["loss"], data)
        expected = stack_elements(targets, targets)
        return [(stack_elements(member, targets) - expected).ravel() for member in outputs]

    def squared_errors(self, data: Dataset) -> list[float]:
        """Compute the mean squared error of each member."""
        all_errors = self._compute_errors(data, self._normalize_outputs(data))
        return [float((errors**2).mean()) for errors in all_errors]

    def averaged_weights(self) -> TrainingRun:
        """Return the model whose parameters are the means of the members' parameters.

        Its outputs differ from the average of the members' outputs unless the graph is linear in
        its parameters: hidden units can be permuted, so the mean of the parameters of similar
        functions can be a very different function.

        Raises:
            UsageError: the members have different graphs, or differently normalized columns.

        >>> import cgprimer
        >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
        >>> data = cgprimer.make_dataset(graph, samples=50, noise=1.0)
        >>> bag = ensemble(graph, data, members=3, epochs=5)
        >>> mean = bag.averaged_weights().predict(data)["xw"]
        >>> bool(np.allclose(mean, bag.predict(data)["xw"]))
        True
        """
        first = self.runs[0]
        for run in self.runs[1:]:
            if explain_difference(run, first.known_graph):
                hint = "use members of one graph; predict() averages the outputs of any members"
                raise UsageError("cannot average the parameters of different graphs", hint=hint)
            if run.scales.keys() != first.scales.keys() or any(
                not np.array_equal(run.scales[key], first.scales[key]) for key in first.scales
            ):
                hint = "train without normalize, or without bootstrap samples"
                message = "cannot average the parameters of members with different normalization"
                raise UsageError(message, hint=hint)
        means = [
            {n: np.mean([getattr(r, part)[n] for r in self.runs], axis=0)[()] for n in values}
            for part, values in (("parameters", first.parameters), ("statistics", first.statistics))
        ]
        return TrainingRun(
            means[0], {**means[0]}, first.truth, first.settings,
            statistics=means[1], scales=first.scales, graph=first.graph,
        )  # fmt: skip

    def averaged_weights_error(self, data: Dataset) -> float:
        """Compute the mean squared error of the model from :meth:`averaged_weights`."""
        run = self.averaged_weights()
        outputs = convert_to_probabilities(self._compute_outputs(run, data), run.settings["loss"])
        return float((self._compute_errors(data, [outputs])[0] ** 2).mean())

    def out_of_bag(self) -> dict[str, float]:
        """Compute out-of-bag errors: each sample is predicted by members not trained on it.

        Returns:
            ``squared-error``, the mean squared error of the average over samples and outputs;
            ``accuracy`` of the vote if the targets are classes; and ``samples``, the number of
            samples that at least one member was not trained on. A bootstrap sample leaves out
            about 37 % of the samples.

        Source: Breiman 1996, "Out-of-bag estimation".
        """
        unseen = np.stack([~np.isin(np.arange(len(self.data)), rows) for rows in self.drawn])
        is_out_of_bag = unseen.any(axis=0)
        if not is_out_of_bag.any():
            message = "every member was trained on every sample"
            raise DataError(message, hint="use more members, or more samples")
        result: dict[str, float] = {"samples": int(is_out_of_bag.sum())}
        data, total = self.data.where(np.flatnonzero(is_out_of_bag)), 0.0
        unseen = unseen[:, is_out_of_bag]
        members = self._normalize_outputs(data)
        predictions = {n: np.stack([outputs[n] for outputs in members]) for n in members[0]}
        for name, outputs in predictions.items():
            weights = unseen.reshape(*unseen.shape, *[1] * (outputs.ndim - 2))
            mean = (outputs * weights).sum(axis=0) / weights.sum(axis=0)
            total += float(((mean - data.targets[name]) ** 2).mean())
        result["squared-error"] = total / len(predictions)
        try:
            labels, expected = find_classes(data.targets, self.data.targets)
        except DataError:  # the targets are not classes
            return result
        predicted = np.stack([find_classes(outputs, self.data.targets)[1] for outputs in members])
        votes = find_majority(predicted, unseen, len(labels))
        return result | {"accuracy": float((votes == expected).mean())}

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
    """Train an ensemble on bootstrap samples, drawn with replacement from the dataset.

    Args:
        graph, dataset: as in :func:`cgprimer.train`.
        members: number of members.
        vary: lists of settings, and ``graph``, a mapping of names to graphs, as in
            :func:`cgprimer.sweep`. Members are assigned the combinations in turn.
        bootstrap: whether to train members on bootstrap samples. Otherwise members are trained on
            all samples and differ in their start, the order of samples, and what varies.
        seed: the random seed; member k is trained with the seed ``seed + k``.
        jobs: number of runs in parallel; by default the number of cores.
        on_run: called after each run with the number of finished runs and of all runs.
        settings: settings of all runs, as for :func:`cgprimer.train`.

    Raises:
        UsageError, DataError: as :func:`cgprimer.train`; a member that diverges; fewer members
            than combinations.

    Source: Breiman 1996, "Bagging predictors".

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=200, noise=1.0)
    >>> bag = ensemble(graph, data, members=4, epochs=20)
    >>> spread = bag.spread(cgprimer.make_dataset(graph, samples=200, noise=1.0, seed=1))
    >>> bool(spread.measured < spread.variance), abs(spread.measured - spread.expected) < 1e-12
    (True, True)
    """
    check_graph(graph)
    check_functions(on_run=on_run)
    members = check_integer("members", members, minimum=1)
    seed = check_integer("the seed", seed)
    varied = list(iterate_combinations(vary, _VARIED)) if vary else [{}]
    if len(varied) > members:
        hint = f"use at least members={len(varied)} (--members {len(varied)})"
        message = f"cannot assign {len(varied)} combinations to {members} members"
        raise UsageError(message, hint=hint)
    common = {name: value for name, value in settings.items() if name in SETTING_NAMES}
    dataset, checked = load_training_data(graph, dataset, create_settings(common)[0])
    dataset = require_in_memory(dataset, "bootstrap samples require a dataset in memory")
    graphs = {None: graph, **(vary or {}).get(GRAPH, {})}
    for model in graphs.values():
        _check_outputs(graph, model)

    def prepare_call(combination: Mapping[str, Any], data: Dataset, seed: int) -> Any:
        """Return a partial call to :func:`cgprimer.train` that trains one member."""
        model = graphs[combination.get(GRAPH)]
        member_settings = {
            name: value for name, value in combination.items() if name in SETTING_NAMES
        }
        return partial(
            train,
            model,
            match_columns_to_graph(model, data),
            seed=seed,
            **(settings | member_settings),
        )

    for combination in varied:  # report mistakes before any run
        prepare_call(combination, dataset, seed)(epochs=0)
    dataset = match_columns_to_graph(graph, dataset)
    dataset = replace(dataset, targets=align_targets(graph, checked.loss, dataset))
    drawn = _sample_indices(len(dataset), members, seed, bootstrap)
    calls = [
        prepare_call(varied[k % len(varied)], dataset.where(indices), seed + k)
        for k, indices in enumerate(drawn)
    ]
    runs = run_in_parallel(calls, jobs, on_run)
    for k, run in runs.items():
        if run.stopped == "diverged":
            hint = "try a smaller learning rate (--learning-rate)"
            raise UsageError(f"member {k + 1} diverged: {run.reason}", hint=hint)
    return Ensemble(
        tuple(runs.values()), tuple(drawn[k] for k in runs), dataset, graph,
        tuple(varied[k % len(varied)] for k in runs),
    )  # fmt: skip


def _sample_indices(samples: int, members: int, seed: int, bootstrap: bool) -> list[Array]:
    """Return the sample indices of each member: a bootstrap sample, or all samples."""
    if not bootstrap:
        return [np.arange(samples)] * members
    seeds = np.random.SeedSequence(seed).spawn(members)
    return [np.random.default_rng(s).integers(0, samples, samples) for s in seeds]


def _check_outputs(graph: ExpressionGraph, other: ExpressionGraph) -> None:
    """Raise UsageError if the outputs of two graphs cannot be averaged."""
    sizes = [sum(map(prod, find_output_shapes(g).values())) for g in (graph, other)]
    if sizes[0] != sizes[1]:
        first = f"{graph.source.name} has {pluralize(sizes[0], 'output value')} per sample"
        raise UsageError(
            f"cannot average outputs of different sizes: {first},"
            f" but {other.source.name} has {sizes[1]}"
        )


def find_majority(classes: Array, counted: Array | None = None, n: int | None = None) -> Array:
    """Return the class with the most votes for each sample; ties go to the lowest class.

    Args:
        classes: indices of classes from 0, shape (members, samples).
        counted: mask of the votes that count, of the same shape; by default all.
        n: the number of classes; by default the highest index plus 1.

    >>> find_majority(np.array([[0, 2, 1], [1, 2, 0], [1, 0, 2]])).tolist()
    [1, 2, 0]
    """
    n = int(classes.max()) + 1 if n is None else n
    votes = classes[..., None] == np.arange(n)
    if counted is not None:
        votes = votes & counted[..., None]
    winners: Array = votes.sum(axis=0).argmax(axis=-1)  # the first of equal maxima
    return winners


def compute_spread(errors: Array) -> Spread:
    """Compute the variance and covariance of the errors that an ensemble's members make.

    >>> compute_spread(np.array([[1.0, -1.0], [1.0, 1.0]]))
    Spread(members=2, variance=1.0, covariance=0.0, measured=0.5)
    """
    members = len(errors)
    products = errors @ errors.T / errors.shape[1]
    squares = float(np.trace(products))
    mixed = float(products.sum()) - squares
    pairs = members * (members - 1)
    measured = float((errors.mean(axis=0) ** 2).mean())
    return Spread(members, squares / members, mixed / pairs if pairs else 0.0, measured)
