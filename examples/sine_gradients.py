"""sin(3w + b) at 25 points, and the chain of functions of its backward pass.

Topic: Recorded Python (introductory)
Teaches: The graph of a backward pass as PyTorch links it; one pass computes all derivatives.
Source: lecture on automatic differentiation for deep-learning frameworks.
Run: python examples/sine_gradients.py [PICTURE]
"""

import sys

import numpy as np

import cgprimer
from cgprimer import Value

points = np.linspace(0, 2 * np.pi, 25)
w, b = Value(points, name="w"), Value(points, name="b")
y = np.sin(3.0 * w + b)

print("chain:", y.grad_fn)
function = y.grad_fn
while function is not None:  # follow the first operands
    print(function.name, [repr(following) for following, _ in function.next_functions])
    function = function.next_functions[0][0] if function.next_functions else None

total = y.sum()
total.backward(retain_graph=True)
print("d sum/dw =", *(f"{slope:.1f}" for slope in w.grad[:6]), "...")
print("3 cos(3w + b):", np.allclose(w.grad, 3 * np.cos(4 * points)))
if len(sys.argv) > 1:
    cgprimer.draw(y.grad_fn).savefig(sys.argv[1])
