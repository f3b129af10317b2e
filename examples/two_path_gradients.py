"""The graph as autograd sees it: requires_grad, grad_fn and accumulation.

Topic: Recorded Python (introductory)
Teaches: requires_grad propagates to results; leaves and constants have no grad_fn; a backward pass
starts from a scalar; nothing is recorded under no_grad; a second pass adds to the gradients of the
first.
Source: the hand-written notes on autograd: b = w1*a, c = w2*a, d = w3*b + w4*c, L = 10 - d.
Run: python examples/two_path_gradients.py [PICTURE]
"""

import sys

import cgprimer
from cgprimer import Value

print("# only w4 requires a gradient")
a, w1, w2, w3 = (Value(v, requires_grad=False) for v in (2.0, 3.0, -1.0, 0.5))
w4 = Value(4.0, name="w4")
b, c = w1 * a, w2 * a
d = w3 * b + w4 * c
L = 10.0 - d
for name, value in {"a": a, "b": b, "c": c, "w4": w4, "d": d, "L": L}.items():
    print(f"{name:<3} requires_grad {value.requires_grad!s:<6} grad_fn {value.grad_fn!r}")
print("chain:", L.grad_fn)

print("\n# all of them do: dL/da is the sum over two paths")
a, w1, w2, w3, w4 = (
    Value(v, name=n) for n, v in {"a": 2.0, "w1": 3.0, "w2": -1.0, "w3": 0.5, "w4": 4.0}.items()
)
b, c = w1 * a, w2 * a
d = w3 * b + w4 * c
L = 10.0 - d
L.backward(retain_graph=True)
print("L =", L.data, *(f"dL/d{v.name} = {v.grad}" for v in (a, w1, w2, w3, w4)))

print("\n# a second pass adds to the gradients")
L.backward(retain_graph=True)
print("a.grad =", a.grad)
if len(sys.argv) > 1:
    cgprimer.draw(L).savefig(sys.argv[1])
a.zero_grad()
print("after zero_grad:", a.grad)

print("\n# nothing is recorded here")
with cgprimer.no_grad():
    print((a * w1).requires_grad)

print("\n# a backward pass starts from a single number")
try:
    (Value([1.0, 2.0]) * a).backward()
except cgprimer.DifferentiationError as error:
    print(error)
