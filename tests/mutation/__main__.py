"""Commands of the mutation trial: ``python -m tests.mutation list`` and ``run``.

A trial changes the sources of this checkout, one bug at a time, and restores each file. So it
refuses to begin with uncommitted changes in cgprimer, and needs a suite that passes. Two trials at
the same time need two checkouts, each with an environment of its own.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import click

from tests.mutation import trial
from tests.mutation.mutants import (
    PACKAGES,
    PER_PACKAGE,
    ROOT,
    SEED,
    Mutant,
    read_planted,
    sample_mutants,
)

package_option = click.option(
    "--package", "packages", multiple=True, type=click.Choice(PACKAGES), help="Default: all."
)
count_option = click.option("--count", default=PER_PACKAGE, help="Mutants per package.")
seed_option = click.option("--seed", default=SEED, help="Seed of the sample.")
name_option = click.option("--name", "names", multiple=True, help="Only the mutant of this name.")


@click.group(help=__doc__)
def main() -> None:
    pass


@main.command("list")
@package_option
@count_option
@seed_option
@name_option
def list_mutants(packages: tuple[str, ...], count: int, seed: int, names: tuple[str, ...]) -> None:
    """Print the mutants.

    A mutant that no test can catch gets an entry in judgements.json: file, before, after (the
    changed lines without indentation) and judgement, which is "equivalent: REASON" if the change
    has no effect, or "cosmetic: REASON" for a size, a distance or a colour in a picture.
    """
    for mutant in choose_mutants(packages, count, seed, names):
        click.echo(f"{mutant.name}  {mutant.file}:{mutant.line}  {mutant.judgement}")
        for sign, text in (("-", mutant.before), ("+", mutant.after)):
            for line in text.split("\n"):
                click.echo(f"  {sign} {line.strip()}")


@main.command()
@package_option
@count_option
@seed_option
@name_option
@click.option(
    "--tests",
    multiple=True,
    help="Run these tests (paths or arguments of pytest) instead of the package's.",
)
@click.option(
    "--coverage",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run the tests that reach the mutated line first, according to this data file of"
    " `pytest --cov=cgprimer --cov-context=test -m 'not browser'`.",
)
@click.option("--everything", is_flag=True, help="Run the full suite on what survives.")
@click.option("--jobs", default="0", help="Processes of pytest (-n).")
@click.option("--unmutated/--no-unmutated", default=True, help="Check first that tests pass.")
@click.option(
    "--results",
    default="mutation.json",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of outcomes. Mutants that it lists as killed are not tried again.",
)
def run(
    packages: tuple[str, ...],
    count: int,
    seed: int,
    names: tuple[str, ...],
    tests: tuple[str, ...],
    coverage: Path | None,
    everything: bool,
    jobs: str,
    unmutated: bool,
    results: Path,
) -> None:
    """Plant mutants one by one, and print which of them survive and a table by package."""
    check_checkout()
    outcomes = {o.mutant.name: o for o in trial.read_outcomes(results)}
    mutants = choose_mutants(packages, count, seed, names)
    if unmutated:
        check_tests(mutants, tests, jobs)
    for mutant in mutants:
        earlier = outcomes.get(mutant.name)
        if earlier is not None and earlier.verdict == "killed" and earlier.mutant == mutant:
            continue
        stages = [list(tests)] if tests else trial.list_stages(mutant, coverage, everything)
        outcome = trial.try_mutant(mutant, stages, jobs)
        outcomes[mutant.name] = outcome
        trial.write_outcomes(results, outcomes.values())
        text = (
            f"{outcome.verdict:10} {mutant.name}  {mutant.file}:{mutant.line}  {outcome.evidence}"
        )
        click.echo(f"{text}  ({outcome.seconds:.0f} s)")
    chosen = {mutant.name for mutant in mutants}
    click.echo(trial.format_table([o for name, o in outcomes.items() if name in chosen]))


def choose_mutants(
    packages: tuple[str, ...], count: int, seed: int, names: tuple[str, ...]
) -> list[Mutant]:
    """Return the hand-written and the sampled mutants of the packages."""
    mutants = []
    for package in packages or PACKAGES:
        mutants += [*read_planted(package), *sample_mutants(package, count, seed)]
    return [mutant for mutant in mutants if not names or mutant.name in names]


def check_checkout() -> None:
    """Raise UsageError if sources of the package have uncommitted changes."""
    command = ["git", "status", "--porcelain", "--", "cgprimer"]
    if subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout:
        raise click.UsageError("cgprimer has uncommitted changes; commit or stash them first")


def check_tests(mutants: list[Mutant], tests: tuple[str, ...], jobs: str) -> None:
    """Raise ClickException if a test of the chosen packages fails without any mutant."""
    stages = [list(tests)] if tests else []
    if not tests:
        for package in dict.fromkeys(mutant.package for mutant in mutants):
            mutant = next(m for m in mutants if m.package == package)
            stages += trial.list_stages(mutant, None, everything=False)
    for stage in stages:
        failure = trial.run_tests(stage, jobs)
        if failure:
            raise click.ClickException(f"the tests must pass without mutants: {failure}")


if __name__ == "__main__":
    main()
