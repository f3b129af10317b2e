"""A primitive whose backward pass is not its derivative.

Topic: Recorded Python (advanced)
Teaches: Function, forward and backward, and how ctx.save passes values between them; the true
derivative of a truncation is 0 almost everywhere, so training needs another backward pass.
Source: the computational-graph lecture: forward truncates to an unsigned byte, backward adds the
saved quantization error to the incoming gradient.
Run: python examples/quantization.py
"""

import numpy as np

import cgprimer
from cgprimer import Function, Value


class Byte(Function):
    @staticmethod
    def forward(ctx, x):
        kept = np.trunc(np.clip(x, 0.0, 255.0))
        ctx.save(x - kept)
        return kept

    @staticmethod
    def backward(ctx, grad):
        (error,) = ctx.saved
        return grad + error


x = Value([3.75, 4.5], name="x")
y = Byte.apply(x)
print("forward:", y.data)
y.backward(np.array([2.0, 3.0]))
print("backward of (2, 3):", x.grad)

print("\n# in the language, once it is registered")
cgprimer.register_primitive(Byte)
graph = cgprimer.parse("input x = 3.75; parameter k = 2; y = k*Byte(x); output y")
print("reverse:", cgprimer.gradient(graph, wrt=("k", "x")))
try:
    cgprimer.gradient(graph, wrt="x", method="forward")
except cgprimer.DifferentiationError as error:
    print("forward:", error)
