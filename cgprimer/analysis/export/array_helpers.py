"""Functions of exported files that numpy, torch or jax lack."""

from __future__ import annotations

import re

METHODS = {
    # numpy has no erf; torch and jax have their own forms where one written out would lose a
    # derivative at a kink that the function does not have.
    "numpy": {name: f"{name}({{a}})" for name in ("erf", "erfc")},
    "torch": {
        "sigmoid": "torch.sigmoid({a})",
        "softplus": "torch.logaddexp({a}, number(0.0))",
        "relu": "torch.relu({a})",
        "xlogy": "torch.xlogy({a}, {b})",
        "stop_gradient": "{a}.detach()",
    },
    "jax": {
        "erf": "jax.scipy.special.erf({a})",
        "erfc": "jax.scipy.special.erfc({a})",
        "sigmoid": "jax.nn.sigmoid({a})",
        "softplus": "jnp.logaddexp({a}, 0.0)",
        "relu": "jax.nn.relu({a})",
        "stop_gradient": "jax.lax.stop_gradient({a})",
    },
}

_COMMON = '''
def arrays(*given):
    """Numbers and nested lists as arrays of double precision."""
    return tuple(ASARRAY(a, dtype=P.float64) for a in given)

def repeated(a, rank, shape):
    """Repeated along new axes and axes of length 1; samples, the axes before ``rank``, stay."""
    (a,) = arrays(a)
    own = tuple(a.shape)
    samples, own = own[: len(own) - rank], own[len(own) - rank :]
    filled = a.reshape(samples + (1,) * (len(shape) - rank) + own)
    return P.broadcast_to(filled, samples + shape)

def reshaped(a, rank, shape):
    """The same numbers in another shape."""
    return a.reshape(tuple(a.shape[: a.ndim - rank]) + shape)

def permuted(a, axes):
    """Axes in another order, counted from the end."""
    order = (*range(a.ndim - len(axes)), *(a.ndim + axis for axis in axes))
    return TRANSPOSE

def joined(parts, axis, rank):
    """One after the other along an axis."""
    samples = P.broadcast_shapes(*(tuple(a.shape[: a.ndim - rank]) for a in parts))
    whole = [P.broadcast_to(a, (*samples, *a.shape[a.ndim - rank :])) for a in parts]
    return P.concatenate(whole, axis)

def scattered(a, places, shape):
    """Elements added up at their places in zeros: the transpose of an index."""
    (a,) = arrays(a)
    samples = tuple(a.shape[: a.ndim - places.ndim])
    made = P.zeros(samples + (math.prod(shape),), dtype=P.float64)
    rows = a.reshape(samples + (math.prod(places.shape),))
    SCATTER
    return made.reshape(samples + shape)

def batch_mean(a, rank):
    """The mean over the samples, for each of them."""
    axes = tuple(range(a.ndim - rank))
    return P.broadcast_to(P.mean(a, axes, keepdims=True), a.shape) if axes else a

def spread(slope, samples, shape=()):
    """A derivative for each sample, also where all samples have the same."""
    return P.broadcast_to(arrays(slope)[0], (*samples, *shape))

def distance(a):
    """The size of a number, 1 or more, rounded down to a power of two."""
    size = P.abs(P.where(P.isfinite(a), a, P.ones_like(a)))
    return P.ldexp(arrays(1.0)[0], P.frexp(P.maximum(P.ones_like(a), size))[1] - 1)

def same(found, expected, within):
    """Whether all numbers are right, infinite ones and those that are none, too."""
    found, expected, within = arrays(found, expected, within)
    alike = (found == expected) | ((found != found) & (expected != expected))
    off = P.where(alike, P.zeros_like(found), found) - P.where(alike, P.zeros_like(found), expected)
    good = alike | (P.abs(off) <= within)
    return found.shape == expected.shape and bool(good.all())
'''
_DIFFERENT = {
    "numpy": {
        "ASARRAY": "np.asarray",
        "P": "np",
        "TRANSPOSE": "a.transpose(order)",
        "SCATTER": "np.add.at(made, (..., places.ravel()), rows)",
    },
    "torch": {
        "ASARRAY": "torch.as_tensor",
        "P": "torch",
        "TRANSPOSE": "a.permute(order)",
        "SCATTER": "made.index_add_(-1, places.ravel(), rows)",
    },
    "jax": {
        "ASARRAY": "jnp.asarray",
        "P": "jnp",
        "TRANSPOSE": "a.transpose(order)",
        "SCATTER": "made = made.at[..., places.ravel()].add(rows)",
    },
}
_MORE = {
    "numpy": '''
def erf(a):
    """The error function, which numpy lacks."""
    return np.vectorize(math.erf, otypes=[float])(a)

def erfc(a):
    """Its complement, 1 - erf(a), without loss of digits."""
    return np.vectorize(math.erfc, otypes=[float])(a)
''',
    "torch": '''
def number(a):
    """A number as torch wants it beside its own."""
    return torch.tensor(a, dtype=torch.float64)
''',
    "jax": "",
}


def _list_functions(target: str) -> dict[str, str]:
    """Return the source code of the helper functions for an array library, keyed by name."""
    text = _COMMON + _MORE[target]
    for placeholder, code in _DIFFERENT[target].items():
        text = re.sub(rf"\b{placeholder}\b", code, text)
    parts = [part.strip() for part in re.split(r"\n(?=def )", text)]
    return {part[4 : part.index("(")]: part for part in parts if part}


FUNCTIONS = {target: _list_functions(target) for target in METHODS}
