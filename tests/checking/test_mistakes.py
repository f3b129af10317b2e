"""Mistakes that are planted in students' programs are named."""

from __future__ import annotations

import pytest

from cgprimer.course.checks.mistake_search import MISTAKES
from tests.checking.planted import PLANTED, named
from tests.checking.planted_rules import PLANTED_RULES

ALL = (*PLANTED, *PLANTED_RULES)


def test_every_mistake_is_planted() -> None:
    assert {*ALL} == MISTAKES.keys()


@pytest.mark.parametrize("mistake", ALL)
def test_a_planted_mistake_is_named(mistake: str) -> None:
    for verdict in named(mistake, 3):
        assert verdict.named, verdict


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ALL)
def test_planted_mistakes_are_named_in_most_graphs(mistake: str) -> None:
    tried = named(mistake, 25)
    assert len(tried) == 25
    missed = [verdict for verdict in tried if not verdict.named]
    assert len(missed) <= 1, missed
