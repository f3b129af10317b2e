"""``cgprimer check optimizer``: update rules that students wrote, and the likely mistake."""

from __future__ import annotations

from cgprimer.cli.checks.check_options import check_command, submission_options
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import NAMES
from cgprimer.cli.shared_options import seed_option
from cgprimer.course.checks.batch_checks import Check


@check_command()
@option(
    "--optimizer", "rules", **NAMES, help="Optimizers to check (default: all in the submission)."
)
@seed_option
@submission_options
def command(rules: tuple[str, ...], seed: int) -> Check:
    """Check optimizers by their updates and name the likely mistake.

    \b
    Examples:
      cgprimer check optimizer --optimizer adam --skeleton > adam.py
      cgprimer check optimizer adam.py
      cgprimer check optimizer submissions/ --optimizer momentum,adam
    """
    from cgprimer.course.checks.optimizer_check import check_optimizer, create_skeleton, list_points

    return Check(
        "optimizer",
        f"{rules} {seed}",
        lambda submission, limits: check_optimizer(submission, rules, seed=seed, limits=limits),
        "\n\n".join(create_skeleton(rule) for rule in rules or ("adam",)),
        f"cgprimer.check_optimizer(NAMES, {list(rules)}, seed={seed})",
        list_points(rules),
    )
