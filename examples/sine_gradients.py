"""sin(3w + b) for 25 values at once, and the chain of functions behind it.

Teaches: the graph of a backward pass, as PyTorch links it, and that one pass has all slopes.
Source: lecture on automatic differentiation for deep-learning frameworks.
Run: python examples/sine_gradients.py
"""

import numpy as np

import cgprimer
from cgprimer import Value

points = np.linspace(0, 2 * np.pi, 25)
w, b = Value(points, name="w"), Value(points, name="b")
y = np.sin(3.0 * w + b)

print("chain:", y.grad_fn)
function = y.grad_fn
while function is not None:  # walk along the first operands
    print(function.name, [repr(following) for following, _ in function.next_functions])
    function = function.next_functions[0][0] if function.next_functions else None

total = y.sum()
total.backward(retain_graph=True)
print("d sum/dw =", *(f"{slope:.1f}" for slope in w.grad[:6]), "...")
print("3 cos(3w + b):", np.allclose(w.grad, 3 * np.cos(4 * points)))
cgprimer.draw(y.grad_fn).savefig("sine_chain.png")
