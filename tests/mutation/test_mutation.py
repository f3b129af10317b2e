"""The trial itself and, behind the marker ``mutation``, the score that packages must reach."""

from pathlib import Path

import pytest

from tests.mutation import trial
from tests.mutation.mutants import PACKAGES, Mutant, read_judgements, read_planted, sample_mutants

SOURCE = "def half(x):\n    return x / 2\n\n\ndef third(x):\n    return x / 3\n"
TESTS = "from code_under_test import half, third\ndef test_half():\n    assert half(8) == 4\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of two functions, of which one is tested."""
    (tmp_path / "code_under_test.py").write_text(SOURCE)
    (tmp_path / "test_half.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    monkeypatch.setattr(trial, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "before", "after", "verdict"),
    [
        (2, "    return x / 2", "    return x * 2", "killed"),
        (6, "    return x / 3", "    return x * 3", "survived"),
    ],
)
def test_a_mutant_is_killed_if_a_test_fails(
    project: Path, line: int, before: str, after: str, verdict: str
) -> None:
    mutant = Mutant("m", "core", "code_under_test.py", line, before, after)
    outcome = trial.try_mutant(mutant, [["test_half.py"]], root=project)
    assert outcome.verdict == verdict, outcome.evidence
    assert (project / "code_under_test.py").read_text() == SOURCE
    assert ("test_half" in outcome.evidence) == (verdict == "killed")


def test_judged_mutants_are_not_run_and_do_not_count() -> None:
    def outcome(judgement: str) -> trial.Outcome:
        return trial.try_mutant(Mutant("m", "core", "none.py", 1, "a", "b", judgement), [])

    outcomes = [outcome("equivalent: a == b"), outcome("cosmetic: a margin")]
    assert [o.verdict for o in outcomes] == ["equivalent", "cosmetic"]
    killed, survived = (
        trial.Outcome(outcomes[0].mutant, verdict, "", 0) for verdict in ("killed", "survived")
    )
    assert trial.compute_score([*outcomes, killed, killed, killed, survived]) == 0.75
    assert "| core | 3 | 1 | 0 | 1 | 1 | 100% |" in trial.format_table([*outcomes, killed])


def test_lines_are_found_again_after_they_have_moved() -> None:
    mutant = Mutant("m", "core", "f.py", 4, "    a = 1", "    a = 2")
    assert mutant.apply("    a = 1\n\n\n\n\n    a = 1\n") == "    a = 1\n\n\n\n\n    a = 2\n"
    with pytest.raises(ValueError, match=r"no longer in f\.py"):
        mutant.apply("    a = 3\n")


def test_every_planted_bug_applies_and_every_judgement_has_a_reason() -> None:
    root = Path(trial.__file__).parents[2]
    for mutant in read_planted():
        source = (root / mutant.file).read_text("utf-8")
        assert mutant.apply(source) != source
    for judgement in read_judgements().values():
        kind, _, reason = judgement.partition(": ")
        assert kind in ("equivalent", "cosmetic")
        assert len(reason) > 10, judgement


@pytest.mark.slow
def test_a_sample_depends_on_the_seed_only() -> None:
    pytest.importorskip("cosmic_ray")
    first, again, other = (sample_mutants("support", 5, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert [m.name for m in sample_mutants("support", 3, 1)] == [m.name for m in first[:3]]


@pytest.mark.mutation
@pytest.mark.parametrize("package", PACKAGES)
def test_tests_kill_planted_bugs(package: str) -> None:
    mutants = [*read_planted(package), *sample_mutants(package)]
    outcomes = [
        trial.try_mutant(mutant, trial.list_stages(mutant, None, everything=True), "auto")
        for mutant in mutants
    ]
    survivors = [o.mutant.name for o in outcomes if o.verdict == "survived"]
    print(trial.format_table(outcomes))
    assert trial.compute_score(outcomes) >= 0.85, survivors
