"""Functions of exported files that numpy, torch or jax lack."""

from __future__ import annotations

import re

METHODS = {
    # numpy has no erf; torch and jax have their own forms where one written out would lose a
    # derivative at a kink that the function does not have.
    "numpy": {name: f"{name}({{a}})" for name in ("erf", "erfc")},
    "torch": {
        "sigmoid": "torch.sigmoid({a})",
        "softplus": "torch.logaddexp({a}, to_tensor(0.0))",
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
def to_arrays(*values):
    """Convert numbers and nested lists to float64 arrays."""
    return tuple(ASARRAY(a, dtype=P.float64) for a in values)

def broadcast_array(a, rank, shape):
    """Broadcast each sample, which has ``rank`` axes, to a shape."""
    (a,) = to_arrays(a)
    n_batch_axes = a.ndim - rank
    batch_shape, sample_shape = tuple(a.shape[:n_batch_axes]), tuple(a.shape[n_batch_axes:])
    padded = a.reshape(batch_shape + (1,) * (len(shape) - rank) + sample_shape)
    return P.broadcast_to(padded, batch_shape + shape)

def reshape_array(a, rank, shape):
    """Reshape each sample, which has ``rank`` axes."""
    return a.reshape(tuple(a.shape[: a.ndim - rank]) + shape)

def permute_axes(a, axes):
    """Permute the last axes, given as negative axis numbers."""
    order = (*range(a.ndim - len(axes)), *(a.ndim + axis for axis in axes))
    return TRANSPOSE

def concatenate_arrays(parts, axis, rank):
    """Concatenate arrays along an axis; each sample has ``rank`` axes."""
    batch_shape = P.broadcast_shapes(*(tuple(a.shape[: a.ndim - rank]) for a in parts))
    arrays = [P.broadcast_to(a, (*batch_shape, *a.shape[a.ndim - rank :])) for a in parts]
    return P.concatenate(arrays, axis)

def scatter_add(a, indices, shape):
    """Add elements to an array of zeros at flat indices: the transpose of indexing."""
    (a,) = to_arrays(a)
    batch_shape = tuple(a.shape[: a.ndim - indices.ndim])
    result = P.zeros(batch_shape + (math.prod(shape),), dtype=P.float64)
    rows = a.reshape(batch_shape + (math.prod(indices.shape),))
    SCATTER
    return result.reshape(batch_shape + shape)

def batch_mean(a, rank):
    """Return the mean over the batch, repeated for each sample."""
    axes = tuple(range(a.ndim - rank))
    return P.broadcast_to(P.mean(a, axes, keepdims=True), a.shape) if axes else a

def broadcast_to_batch(derivative, batch_shape, shape=()):
    """Broadcast a derivative to all samples of a batch."""
    return P.broadcast_to(to_arrays(derivative)[0], (*batch_shape, *shape))

def compute_scale(a):
    """Return max(1, abs(a)), rounded down to a power of 2."""
    magnitude = P.abs(P.where(P.isfinite(a), a, P.ones_like(a)))
    exponent = P.frexp(P.maximum(P.ones_like(a), magnitude))[1] - 1
    return P.ldexp(to_arrays(1.0)[0], exponent)

def is_close(result, expected, tolerance):
    """Return whether all elements are within the tolerance; nan equals nan."""
    result, expected, tolerance = to_arrays(result, expected, tolerance)
    same = (result == expected) | (P.isnan(result) & P.isnan(expected))
    zeros = P.zeros_like(result)  # inf - inf would be nan
    difference = P.where(same, zeros, result) - P.where(same, zeros, expected)
    close = same | (P.abs(difference) <= tolerance)
    return result.shape == expected.shape and bool(close.all())
'''
_DIFFERENT = {
    "numpy": {
        "ASARRAY": "np.asarray",
        "P": "np",
        "TRANSPOSE": "a.transpose(order)",
        "SCATTER": "np.add.at(result, (..., indices.ravel()), rows)",
    },
    "torch": {
        "ASARRAY": "torch.as_tensor",
        "P": "torch",
        "TRANSPOSE": "a.permute(order)",
        "SCATTER": "result.index_add_(-1, indices.ravel(), rows)",
    },
    "jax": {
        "ASARRAY": "jnp.asarray",
        "P": "jnp",
        "TRANSPOSE": "a.transpose(order)",
        "SCATTER": "result = result.at[..., indices.ravel()].add(rows)",
    },
}
_MORE = {
    "numpy": '''
def erf(a):
    """Return the error function of each element; numpy does not have it."""
    return np.vectorize(math.erf, otypes=[float])(a)

def erfc(a):
    """Return 1 - erf(a) for each element, without cancellation."""
    return np.vectorize(math.erfc, otypes=[float])(a)
''',
    "torch": '''
def to_tensor(a):
    """Convert a number to a float64 tensor."""
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
