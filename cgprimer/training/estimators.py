"""Graphs where other libraries look for models: scikit-learn's estimators, SciPy's objectives.

Neither library is needed to import this, nor is scikit-learn to use it.
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
    """The mean loss as a function of one vector, for ``scipy.optimize.minimize(..., jac=True)``.

    Args:
        graph: the graph.
        data: as for :func:`cgprimer.train`.
        loss, method, engine, options: as in :func:`cgprimer.train`.
        seed: of the start: values that the graph declares, samples of its initializers, others
            uniform in [0, 1).

    Returns:
        A function from a vector to mean loss and gradient, a start, and what each number is
        called: ``W[0,1]`` of a parameter with a shape.

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
        raise DataError("there are no samples to learn from")
    objective = Objective(graph, options=options, samples=samples, dataset=data, **chosen)
    resident, vectors = ResidentData(objective, data), objective.vectors

    def fun(vector: Array) -> tuple[float, Array]:
        total, gradient = resident.sums(np.asarray(vector, float))
        return total / samples, np.asarray(gradient, float) / samples

    start = vectors.values(vectors.sampled_start(check_integer("the seed", seed)))
    declared = graph.point(needed=()).keys() & start.keys() - graph.initializers.keys()
    start |= {name: value for name, value in graph.point(needed=()).items() if name in declared}
    return fun, vectors.vector(start), tuple(vectors.elements)


class Estimator:
    """A graph as a model of scikit-learn: ``fit``, ``predict``, ``score``, ``get_params``.

    It goes where their models go: ``clone``, ``cross_val_score``, ``Pipeline``, ``GridSearchCV``.
    A row of X are the numbers of the graph's inputs, in their order; of y those of its outputs.
    With ``classify=True`` predictions are labels: of the values of y the one nearest to the output,
    or of several outputs the number of the largest.

    Args:
        graph: a graph, or its text.
        classify: whether y are classes.
        settings: as of :func:`cgprimer.train`, with their names, to be searched over.

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
        return "classifier" if self.classify else "regressor"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks a model about itself."""
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
        """The arguments, by name; a copy is made of these."""
        return {"graph": self.graph, "classify": self.classify, **self.settings}

    def set_params(self, **given: Any) -> Estimator:
        """Change arguments; the run that was fitted stays until the next one."""
        for name, value in given.items():
            if name in ("graph", "classify"):
                setattr(self, name, value)
            else:
                self.settings[name] = value
        return self

    def fit(self, X: Any, y: Any) -> Estimator:
        """Train on rows and targets.

        Raises:
            DataError, UsageError: rows of another length, or settings that are none.
        """
        graph = self.graph if isinstance(self.graph, ExpressionGraph) else parse(self.graph)
        targets = np.asarray(y)
        if self.classify:
            self.classes_, codes = np.unique(targets, return_inverse=True)
            if len(list_scalar_names(graph, graph.outputs)) > 1:
                targets = np.eye(len(self.classes_))[codes]
            elif targets.dtype.kind not in "fiub":
                targets = codes
        inputs = _columns(graph, graph.inputs, X, "X")
        data = Dataset.from_arrays(inputs, _columns(graph, graph.outputs, targets, "y"))
        self.n_features_in_ = len(inputs)
        self.run_: TrainingRun = train(graph, data, **self.settings)
        return self

    def predict(self, X: Any) -> Array:
        """The outputs of rows, or the labels of their classes.

        Raises:
            UsageError: it was not fitted before.
            DataError: rows of another length, or not of numbers.
        """
        if not hasattr(self, "run_"):
            raise UsageError("this Estimator is not fitted yet", hint="fit(X, y) comes first")
        graph = self.run_.known_graph
        found = self.run_.predict(_columns(graph, graph.inputs, X, "X"))
        if self.classify:
            found = convert_to_probabilities(found, self.run_.settings["loss"])
        rows = stack_elements(found, graph.outputs)
        if not self.classify:
            return rows[:, 0] if rows.shape[1] == 1 else rows
        known = self.classes_ if self.classes_.dtype.kind in "fiub" else range(len(self.classes_))
        return self.classes_[find_class_indices(rows, np.asarray(known, float))]

    def score(self, X: Any, y: Any) -> float:
        """The share of right labels, or R^2, as scikit-learn has it."""
        found, wanted = self.predict(X), np.asarray(y)
        if wanted.shape[:1] != found.shape[:1]:
            raise DataError(f"X has {len(found)} rows, and y has the shape {wanted.shape}")
        if self.classify:
            return float(np.mean(found == wanted))
        graph = self.run_.known_graph
        targets = _columns(graph, graph.outputs, wanted, "y")
        return r_squared({"y": found}, {"y": np.stack(list(targets.values()), axis=1)})


def _columns(
    graph: ExpressionGraph, names: tuple[str, ...], given: Any, what: str
) -> dict[str, Array]:
    """A table's columns, or a vector, under the names of the graph's numbers."""
    own = list_scalar_names(graph, names)
    try:
        rows = np.asarray(given, float)
        rows = rows.reshape(len(rows), -1)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{what} is no table of numbers: {error}") from None
    if rows.shape[1] != len(own):
        wanted = join_names(own) or "none"
        raise DataError(f"{what} has {rows.shape[1]} columns, and the graph wants {wanted}")
    return dict(zip(own, rows.T, strict=True))
