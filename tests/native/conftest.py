"""Every plan that a test makes, and where its values live, is held to the rules."""

from collections.abc import Iterator

import pytest

from cgprimer.native import blocks, encoding
from cgprimer.native.plans import making, printing
from tests.native.plan_rules import checked_plan, checked_storage


@pytest.fixture(autouse=True, scope="session")
def plans_keep_the_rules() -> Iterator[None]:
    planned, stored = making._planned, encoding.storage_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "_planned", lambda *a, **k: checked_plan(planned(*a, **k)))
        for module in (blocks, encoding, printing):
            patch.setattr(module, "storage_of", lambda plan: checked_storage(plan, stored(plan)))
        yield
