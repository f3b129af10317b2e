"""What all tests share: Hypothesis looks at the same cases in every run, however slow the machine.

``HYPOTHESIS_PROFILE=explore python -m pytest`` looks at new ones, and at more of them
where a test does not say how many.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import cgprimer

settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples of public functions run where they are written, not once more as cgprimer's own."""
    own = Path(cgprimer.__file__)
    items[:] = [i for i in items if i.path != own or i.name == "cgprimer"]
