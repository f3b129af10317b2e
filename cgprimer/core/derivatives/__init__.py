"""Derivatives of a graph at a point or at many: gradient, Jacobian, Hessian, partials."""

from cgprimer.core.derivatives.evaluation import (
    Evaluation,
    chosen_names,
    chosen_output,
    evaluate_derivatives,
    point_values,
    single_name,
    tape,
)
from cgprimer.core.derivatives.first import Partials, gradient, jacobian, partials
from cgprimer.core.derivatives.second import hessian, hessian_vector_product

__all__ = [
    "Evaluation",
    "Partials",
    "chosen_names",
    "chosen_output",
    "evaluate_derivatives",
    "gradient",
    "hessian",
    "hessian_vector_product",
    "jacobian",
    "partials",
    "point_values",
    "single_name",
    "tape",
]
