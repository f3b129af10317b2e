"""A layer of quaternions: save a large matrix for the backward pass, or compute it again.

Topic: Recorded Python (advanced)
Teaches: What is stored for a backward pass, in bytes, and how `checkpoint` trades time for memory.
Source: the lectures' Hamilton product: the real matrix of a layer of n by m quaternions has 16nm
numbers, computed from 4nm weights. Counted as on the slide, training needs the weights, their
gradients and the saved values: 4 + 4 + 16 parts against 4 + 4, about 3:1.
Run: python examples/hamilton_product.py
"""

import numpy as np

from cgprimer import Value, checkpoint, memory


def real_matrix(q):
    """The matrix by which a quaternion (or a matrix of them) multiplies from the left."""
    a, b, c, d = q[0], q[1], q[2], q[3]
    rows = [[a, -b, -c, -d], [b, a, -d, c], [c, d, a, -b], [d, -c, b, a]]
    return np.concatenate([np.concatenate(row, axis=1) for row in rows], axis=0)


def layer(weights, x):
    return real_matrix(weights) @ x


print("# one product, p by q")
p, q = Value([0.5, -1.0, 0.25, 2.0]), Value([1.0, 2.0, 3.0, 4.0])
product = layer(p.reshape(4, 1, 1), q)
print(product.data)
product.sum().backward()
print("d sum/dp =", p.grad)
print("d sum/dq =", q.grad)

print("\n# a layer of 32 by 32 quaternions")
draw = np.random.default_rng(0)
weights = Value(draw.normal(size=(4, 32, 32)), name="weights")
x = Value(draw.normal(size=128), name="x")  # of the layer before, so it needs a gradient as well
saved, again = layer(weights, x).sum(), checkpoint(layer)(weights, x).sum()
print(f"{'bytes':<15} {'given':>8} {'gradients':>10} {'saved':>8} {'total':>8}")
totals = []
for name, value in {"matrix saved": saved, "computed again": again}.items():
    size = memory(value)
    total = size.given + size.gradients + size.saved
    print(f"{name:<15} {size.given:>8,} {size.gradients:>10,} {size.saved:>8,} {total:>8,}")
    totals.append(total)
print(f"{totals[0] / totals[1]:.2f} : 1")
gradients = []
for value in (saved, again):
    weights.zero_grad()
    value.backward()
    gradients.append(weights.grad)
print("same gradients:", np.array_equal(*gradients))
