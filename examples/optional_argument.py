"""A layer with an optional bias, whose backward pass computes only the required gradients.

Topic: Recorded Python (advanced)
Teaches: A Function with an optional argument, and ctx.needs_input_grad.
Source: the lectures; the example Linear of PyTorch's notes on extending autograd.
Run: python examples/optional_argument.py
"""

import numpy as np

from cgprimer import Function, Value


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight, bias)
        return x @ weight if bias is None else x @ weight + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        print("needs_input_grad:", ctx.needs_input_grad)
        grad_x = grad @ weight.T if ctx.needs_input_grad[0] else None
        grad_weight = x.T @ grad if ctx.needs_input_grad[1] else None
        grad_bias = grad.sum(0) if bias is not None and ctx.needs_input_grad[2] else None
        return grad_x, grad_weight, grad_bias


x = np.array([[1.0, 2.0], [3.0, 4.0]])
weight = Value([[1.0, 0.0, -1.0], [2.0, 1.0, 0.0]], name="weight")
bias = Value([0.5, 0.0, 1.0], name="bias")

print("# without bias")
Linear.apply(x, weight).sum().backward()
print("d sum/d weight =", weight.grad.tolist())

print("\n# with bias")
weight.zero_grad()
Linear.apply(x, weight, bias).sum().backward()
print("d sum/d weight =", weight.grad.tolist())
print("d sum/d bias =", bias.grad.tolist())
