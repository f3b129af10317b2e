"""The mistakes that gradient checks can name, the most likely first.

A mistake is one row: the name that users see, its meaning, and a function that predicts the
derivatives that the mistake leads to. To add a mistake, write such a function and add a row after
more likely mistakes; :class:`~.mistake_rule.MistakeRule` lists the kinds of functions. A wrong
derivative of a primitive needs no function, but one row of :mod:`~.wrong_rules`.
"""

from __future__ import annotations

from cgprimer.course.checks.mistakes.difference_errors import (
    find_large_steps,
    find_rounded_values,
    find_small_steps,
)
from cgprimer.course.checks.mistakes.missing_factors import (
    omit_function_derivatives,
    omit_inner_derivatives,
    omit_loss_derivative,
    omit_outer_derivatives,
    repeat_activation_derivatives,
)
from cgprimer.course.checks.mistakes.mistake_rule import MistakeRule
from cgprimer.course.checks.mistakes.update_mistakes import (
    add_weight_decay,
    return_updated_parameters,
    update_parameters_early,
)
from cgprimer.course.checks.mistakes.wrong_forward_passes import omit_biases, transpose_weights
from cgprimer.course.checks.mistakes.wrong_partials import (
    apply_wrong_rules,
    differentiate_at_inner_operands,
    differentiate_at_results,
    keep_constant_terms,
    keep_functions,
    replace_factors,
)
from cgprimer.course.checks.mistakes.wrong_points import (
    accumulate_calls,
    average_samples,
    differentiate_at_other_points,
    differentiate_with_respect_to_others,
    keep_one_sample,
    omit_one_sample,
)
from cgprimer.course.checks.mistakes.wrong_rules import (
    DEGREES,
    DERIVATIVE,
    EXPONENT,
    LOGARITHM,
    POWER,
    PRODUCT,
    QUOTIENT,
)
from cgprimer.course.checks.mistakes.wrong_sums import (
    average_before_multiplying,
    negate_contributions,
    omit_paths,
    overwrite_adjoints,
)
from cgprimer.course.checks.mistakes.wrong_values import (
    copy_other_derivatives,
    exchange_reduction,
    fit_constant_factors,
    multiply_values,
    negate_values,
    permute_values,
    swap_parameters,
    take_absolute_values,
    take_reciprocals,
    transpose_values,
)

MISTAKE_RULES: tuple[MistakeRule, ...] = (
    MistakeRule(
        "sign",
        "all values, or those of one term, have the wrong sign",
        answers=negate_values,
    ),
    MistakeRule(
        "factor 2 missing",
        "half of the correct value",
        answers=multiply_values(0.5, "a factor of 2 is missing"),
    ),
    MistakeRule(
        "factor 2 too much",
        "twice the correct value",
        answers=multiply_values(2.0, "it is too large by a factor of 2"),
    ),
    MistakeRule(
        "sum instead of mean",
        "the samples of a batch are added instead of averaged",
        answers=exchange_reduction("sum instead of mean"),
    ),
    MistakeRule(
        "mean instead of sum",
        "the samples of a batch are averaged instead of added",
        answers=exchange_reduction("mean instead of sum"),
    ),
    MistakeRule(
        "constant zero",
        "0 at every point",
        answers=multiply_values(0.0, "it is 0 at every point"),
    ),
    MistakeRule(
        "order of the values",
        "correct values in another order, or a transposed matrix",
        answers=transpose_values,
    ),
    MistakeRule(
        "parameters swapped",
        "the derivatives with respect to two parameters are swapped",
        answers=swap_parameters,
    ),
    MistakeRule(
        "order of the values",
        "correct values in another order",
        answers=permute_values,
    ),
    MistakeRule(
        "loss factor missing",
        "the derivative of the loss, such as the error p - y, is missing",
        passes=omit_loss_derivative,
    ),
    MistakeRule(
        "activation derivative missing",
        "the derivative of a function is missing in the chain rule",
        passes=omit_function_derivatives,
    ),
    MistakeRule(
        "activation derivative twice",
        "a function's derivative occurs twice as a factor, as in (p - y)*p*(1 - p)",
        passes=repeat_activation_derivatives,
    ),
    MistakeRule(
        "bias forgotten",
        "the forward pass is computed without a bias",
        passes=omit_biases,
    ),
    MistakeRule(
        "samples left out",
        "the last or the first sample of a batch is missing",
        points=omit_one_sample,
    ),
    MistakeRule(
        "product of averages",
        "factors are averaged over the batch before they are multiplied",
        passes=average_before_multiplying,
        points=average_samples,
    ),
    MistakeRule(
        EXPONENT,
        "the exponent, or the base, of a power is differentiated as a constant",
        passes=apply_wrong_rules(EXPONENT),
    ),
    MistakeRule(
        PRODUCT,
        "f'*g' for (f*g)', or one of its two terms",
        passes=apply_wrong_rules(PRODUCT),
        individual=True,
    ),
    MistakeRule(
        QUOTIENT,
        "f'/g' for (f/g)', one of its two terms, or the divisor is not squared",
        passes=apply_wrong_rules(QUOTIENT),
        individual=True,
    ),
    MistakeRule(
        LOGARITHM,
        "a^u without ln(a), log10(u) without 1/ln(10)",
        passes=apply_wrong_rules(LOGARITHM),
    ),
    MistakeRule(
        "function not differentiated",
        "the function replaces its derivative: sin stays sin",
        passes=keep_functions,
    ),
    MistakeRule(
        "transposed weights",
        "a matrix is used instead of its transpose",
        passes=transpose_weights,
    ),
    MistakeRule(
        "one path of several",
        "a path from the parameter to the output is missing, or is the only one",
        passes=omit_paths,
    ),
    MistakeRule(
        "= instead of +=",
        "contributions overwrite each other instead of being added",
        passes=overwrite_adjoints,
        points=keep_one_sample,
    ),
    MistakeRule(
        "not zeroed",
        "contributions of earlier calls remain",
        points=accumulate_calls,
    ),
    MistakeRule(
        "inner function not evaluated",
        "an outer derivative is taken at x instead of at g(x)",
        passes=differentiate_at_inner_operands,
    ),
    MistakeRule(
        "outer derivative missing",
        "the derivative of the outer function is missing",
        passes=omit_outer_derivatives,
    ),
    MistakeRule(
        "inner derivative missing",
        "the derivative of the inner function is missing",
        passes=omit_inner_derivatives,
    ),
    MistakeRule(
        "wrong variable",
        "the derivative with respect to another variable",
        answers=copy_other_derivatives,
        points=differentiate_with_respect_to_others,
    ),
    MistakeRule(
        "wrong factor",
        "the derivative of a product with respect to a factor is a wrong value",
        passes=replace_factors,
    ),
    MistakeRule(
        "derivative at the wrong point",
        "correct derivatives at another point",
        passes=differentiate_at_results,
        points=differentiate_at_other_points,
    ),
    MistakeRule(
        "constant not differentiated",
        "a constant term remains in the derivative",
        passes=keep_constant_terms,
    ),
    MistakeRule(
        POWER,
        "the exponent is not decreased by 1, or is missing as a factor; the divisor is not squared",
        passes=apply_wrong_rules(POWER),
    ),
    MistakeRule(
        DERIVATIVE,
        "a function has a wrong derivative, such as 1 - tanh(u) or 1 + tanh(u)^2",
        passes=apply_wrong_rules(DERIVATIVE),
    ),
    MistakeRule(
        DEGREES,
        "angles are converted between degrees and radians",
        passes=apply_wrong_rules(DEGREES),
    ),
    MistakeRule("absolute value", "the sign is lost", answers=take_absolute_values),
    MistakeRule("reciprocal", "the reciprocal of the correct value", answers=take_reciprocals),
    MistakeRule(
        "rounded",
        "correct but rounded",
        errors=find_rounded_values,
    ),
    MistakeRule(
        "difference step too large",
        "difference quotients with a truncation error of order h or h^2",
        errors=find_large_steps,
    ),
    MistakeRule(
        "difference step too small",
        "difference quotients dominated by rounding errors",
        errors=find_small_steps,
    ),
    MistakeRule(
        "weight decay added",
        "the gradient of weight decay is added",
        fits=add_weight_decay,
    ),
    MistakeRule(
        "updated parameter returned",
        "the updated parameter instead of its gradient",
        fits=return_updated_parameters,
    ),
    MistakeRule(
        "weight updated before its use",
        "other parameters are updated before this derivative is computed",
        fits=update_parameters_early,
    ),
    MistakeRule(
        "constant factor",
        "the correct value times a constant",
        answers=fit_constant_factors,
    ),
    MistakeRule(
        "sign",
        "one term has the wrong sign",
        passes=negate_contributions,
    ),
)
