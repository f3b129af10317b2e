"""``cgprimer check optimizer``: update rules that students wrote, and the likely mistake."""

from __future__ import annotations

from cgprimer.cli.checks.check_options import check_command
from cgprimer.course.checks.batch_checks import Check


@check_command(
    "--optimizer (rules) NAME,...  Of sgd, momentum, nesterov, adagrad, rmsprop, adam, adamw those"
    " that are asked for (default: all that a submission has).",
    "--seed 0.. =0  Of the gradients.",
)
def command(rules: tuple[str, ...], seed: int) -> Check:
    """Check optimizers by the steps that they take, and name the likely mistake.

    \b
    Examples:
      cgprimer check optimizer --optimizer adam --skeleton > adam.py
      cgprimer check optimizer adam.py
      cgprimer check optimizer submissions/ --optimizer momentum,adam
    """
    from cgprimer.course.checks.optimizer_check import check_optimizer, possible, skeleton

    return Check(
        "optimizer",
        f"{rules} {seed}",
        lambda submission, limits: check_optimizer(submission, rules, seed=seed, limits=limits),
        "\n\n".join(skeleton(rule) for rule in rules or ("adam",)),
        f"cgprimer.check_optimizer(NAMES, {list(rules)}, seed={seed})",
        possible(rules),
    )
