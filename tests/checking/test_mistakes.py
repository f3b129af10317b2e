"""Mistakes that are planted in students' programs are named."""

from __future__ import annotations

import pytest

from cgprimer.checking.mistakes import MISTAKES
from tests.checking.planted import PLANTED, named


def test_every_planted_mistake_is_known() -> None:
    assert PLANTED.keys() <= MISTAKES.keys()


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_named(mistake: str) -> None:
    for graph, number, said, _, found in named(mistake, 3):
        assert found, (graph, number, said)


@pytest.mark.slow
@pytest.mark.parametrize("mistake", PLANTED)
def test_planted_mistakes_are_named_in_most_graphs(mistake: str) -> None:
    tried = list(named(mistake, 40))
    assert len(tried) == 40
    missed = [(graph, said) for graph, _, said, _, found in tried if not found]
    assert len(missed) <= 2, missed
