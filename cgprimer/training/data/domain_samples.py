"""Samples of inputs whose domain is a finite set or one-hot vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.core.language.input_domains import ONE_HOT, Domain
from cgprimer.expressions import Shape

Array = Any


def sample_domain(
    domain: Domain, shape: Shape, samples: int, sample_integers: Callable[[int, Shape], Array]
) -> Array:
    """Sample an input uniformly from its domain: a finite set or one-hot vectors.

    Args:
        domain: a finite set, from which each number is chosen, or ``one-hot`` along the last axis.
        shape: the shape of one sample.
        samples: the number of samples, which is the first axis of the result.
        sample_integers: returns an array of integers from 0 to below its first argument; the second
            argument is the array's shape.

    >>> sample_domain((-1.0, 1.0), (), 3, lambda n, shape: np.arange(3) % n)
    array([-1.,  1., -1.])
    """
    if domain == ONE_HOT:
        classes = shape[-1]
        return np.eye(classes)[sample_integers(classes, (samples, *shape[:-1]))]
    return np.array(domain, float)[sample_integers(len(domain), (samples, *shape))]
