"""Every plan that a test makes, and where its values live, is held to the rules."""

from collections.abc import Iterator

import pytest

from cgprimer.backends import numpy_blocks, plan_encoding
from cgprimer.backends.plans import plan_printing, planning
from tests.native.plan_rules import checked_plan, checked_storage


@pytest.fixture(autouse=True, scope="session")
def plans_keep_the_rules() -> Iterator[None]:
    planned, allocated = planning._build_optimized_plan, plan_encoding.allocate_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            planning, "_build_optimized_plan", lambda *a, **k: checked_plan(planned(*a, **k))
        )
        for module in (numpy_blocks, plan_encoding, plan_printing):
            patch.setattr(
                module, "allocate_rows", lambda plan: checked_storage(plan, allocated(plan))
            )
        yield
