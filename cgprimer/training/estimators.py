"""Graphs as estimators of scikit-learn and as objectives for SciPy.

Importing this module requires neither library, and estimators work without scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.errors import DataError, UsageError, join_names
from cgprimer.expressions import ExpressionGraph, parse
from cgprimer.support.validation import check_integer
from cgprimer.training.data import Dataset
from cgprimer.training.data.dataset_columns import list_scalar_names
from cgprimer.training.loop import train
from cgprimer.training.losses import load_samples
from cgprimer.training.metrics import (
    convert_to_probabilities,
    find_class_indices,
    r_squared,
    stack_elements,
)
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.runs import TrainingRun

Array = Any


def flat_objective(
    graph: ExpressionGraph,
    data: Any,
    *,
    loss: str = "squared-error",
    method: str = "reverse",
    engine: str = "auto",
    seed: int = 0,
    **options: Any,
) -> tuple[Callable[[Array], tuple[float, Array]], Array, tuple[str, ...]]:
    """Return the mean loss as a function of a vector, for ``scipy.optimize.minimize(jac=True)``.

    Args:
        graph: the graph.
        data: as for :func:`cgprimer.train`.
        loss, method, engine, options: as in :func:`cgprimer.train`.
        seed: random seed of the start; declared values are used as they are, initializers are
            sampled, and other values are uniform in [0, 1).

    Returns:
        A function from a vector to mean loss and gradient, a start vector, and the name of each
        element, such as ``W[0,1]``.

    Raises:
        UsageError, DataError: as :func:`cgprimer.loss_and_gradient`.

    >>> import cgprimer
    >>> from scipy.optimize import minimize
    >>> graph = cgprimer.parse("xw = k*xa + b")
    >>> data = cgprimer.make_dataset(graph, truth={"k": 3.0, "b": -1.0}, samples=50)
    >>> fun, start, names = flat_objective(graph, data)
    >>> found = minimize(fun, start, jac=True)
    >>> names, found.x.round(4).tolist()
    (('k', 'b'), [3.0, -1.0])
    """
    chosen: dict[str, Any] = {"loss": loss, "method": method, "engine": engine}
    samples = len(data := load_samples(graph, data, loss))
    if not samples:
        raise DataError("the dataset has no samples")
    objective = Objective(graph, options=options, samples=samples, dataset=data, **chosen)
    resident, vectors = ResidentData(objective, data), objective.vectors

    def fun(vector: Array) -> tuple[float, Array]:
        """Compute the mean loss and its gradient."""
        total, gradient = resident.sums(np.asarray(vector, float))
        return total / samples, np.asarray(gradient, float) / samples

    start = vectors.values(vectors.sampled_start(check_integer("the seed", seed)))
    declared = graph.point(needed=()).keys() & start.keys() - graph.initializers.keys()
    start |= {name: value for name, value in graph.point(needed=()).items() if name in declared}
    return fun, vectors.vector(start), tuple(vectors.elements)


class Estimator:
    """A graph as an estimator of scikit-learn: ``fit``, ``predict``, ``score``, ``get_params``.

    Estimators work with ``clone``, ``cross_val_score``, ``Pipeline`` and ``GridSearchCV``. A row of
    X has the elements of the graph's inputs in their order, a row of y those of its outputs. With
    ``classify=True``, predictions are labels: the value of y nearest to the output, or the index of
    the largest of several outputs.

    Args:
        graph: a graph, or its text.
        classify: whether y contains classes.
        settings: settings of :func:`cgprimer.train`, which a search can vary.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 40).reshape(-1, 1)
    >>> model = Estimator("xw = k*xa + b", epochs=400).fit(X, 3*X[:, 0] - 1)
    >>> model.predict([[2.0]]).round(1), model.run_.parameters["k"].__round__(1)
    (array([5.]), 3.0)
    """

    def __init__(
        self, graph: ExpressionGraph | str = "", *, classify: bool = False, **settings: Any
    ) -> None:
        self.graph, self.classify, self.settings = graph, classify, settings

    @property
    def _estimator_type(self) -> str:
        """The kind of estimator for scikit-learn: ``classifier`` or ``regressor``."""
        return "classifier" if self.classify else "regressor"

    def __sklearn_tags__(self) -> Any:
        """Return the tags that describe the estimator to scikit-learn."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        classes, numbers = (ClassifierTags(), None) if self.classify else (None, RegressorTags())
        return Tags(
            estimator_type=self._estimator_type,
            target_tags=TargetTags(required=True),
            classifier_tags=classes,
            regressor_tags=numbers,
            input_tags=InputTags(),
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments, keyed by name, as scikit-learn requires for copies."""
        return {"graph": self.graph, "classify": self.classify, **self.settings}

    def set_params(self, **given: Any) -> Estimator:
        """Set constructor arguments; the fitted run remains until the next call to ``fit``."""
        for name, value in given.items():
            if name in ("graph", "classify"):
                setattr(self, name, value)
            else:
                self.settings[name] = value
        return self

    def fit(self, X: Any, y: Any) -> Estimator:
        """Train the graph on the rows of X and the targets y.

        Raises:
            DataError, UsageError: the rows have a wrong length, or a setting is invalid.
        """
        graph = self.graph if isinstance(self.graph, ExpressionGraph) else parse(self.graph)
        targets = np.asarray(y)
        if self.classify:
            self.classes_, codes = np.unique(targets, return_inverse=True)
            if len(list_scalar_names(graph, graph.outputs)) > 1:
                targets = np.eye(len(self.classes_))[codes]
            elif targets.dtype.kind not in "fiub":
                targets = codes
        inputs = _split_columns(graph, graph.inputs, X, "X")
        data = Dataset.from_arrays(inputs, _split_columns(graph, graph.outputs, targets, "y"))
        self.n_features_in_ = len(inputs)
        self.run_: TrainingRun = train(graph, data, **self.settings)
        return self

    def predict(self, X: Any) -> Array:
        """Predict the outputs for the rows of X, or the labels of their classes.

        Raises:
            UsageError: the estimator is not fitted.
            DataError: the rows have a wrong length, or are not numeric.
        """
        if not hasattr(self, "run_"):
            raise UsageError("this Estimator is not fitted yet", hint="call fit(X, y) first")
        graph = self.run_.known_graph
        predictions = self.run_.predict(_split_columns(graph, graph.inputs, X, "X"))
        if self.classify:
            predictions = convert_to_probabilities(predictions, self.run_.settings["loss"])
        rows = stack_elements(predictions, graph.outputs)
        if not self.classify:
            return rows[:, 0] if rows.shape[1] == 1 else rows
        numeric_labels = (
            self.classes_ if self.classes_.dtype.kind in "fiub" else range(len(self.classes_))
        )
        return self.classes_[find_class_indices(rows, np.asarray(numeric_labels, float))]

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy of a classifier on X and y, or the R^2 of a regressor."""
        predictions, wanted = self.predict(X), np.asarray(y)
        if wanted.shape[:1] != predictions.shape[:1]:
            raise DataError(f"y must have {len(predictions)} rows like X, got shape {wanted.shape}")
        if self.classify:
            return float(np.mean(predictions == wanted))
        graph = self.run_.known_graph
        targets = _split_columns(graph, graph.outputs, wanted, "y")
        return r_squared({"y": predictions}, {"y": np.stack(list(targets.values()), axis=1)})


def _split_columns(
    graph: ExpressionGraph, names: tuple[str, ...], table: Any, argument: str
) -> dict[str, Array]:
    """Split a table into columns, keyed by the elements of the given inputs or outputs."""
    element_names = list_scalar_names(graph, names)
    try:
        rows = np.asarray(table, float)
        rows = rows.reshape(len(rows), -1)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{argument} must be a numeric table: {error}") from None
    if rows.shape[1] != len(element_names):
        names_expected = join_names(element_names) or "none"
        raise DataError(
            f"{argument} must have {len(element_names)} columns ({names_expected}),"
            f" got {rows.shape[1]}"
        )
    return dict(zip(element_names, rows.T, strict=True))
