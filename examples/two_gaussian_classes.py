"""Two Gaussian classes in the plane, and a 2-10-2 network with ReLU that learns their labels.

Topic: Recorded Python (intermediate)
Teaches: A network of matrices trained one sample at a time; its steps equal the three
backpropagation steps written by hand.
Source: A. Kak, lecture on computational graphs (Purdue): `x.mm(w1).clamp(min=0).mm(w2)`.
Run: python examples/two_gaussian_classes.py
"""

import numpy as np

import cgprimer

graph = cgprimer.parse("""
    input x[2]
    parameter w1[2,10], w2[10,2]
    y_pred = relu(x @ w1) @ w2
    output y_pred
""")

random = np.random.default_rng(0)
points = np.concatenate([random.normal(3, 1, (1000, 2)), random.normal(5, 1, (1000, 2))])
labels = np.repeat([1.0, 2.0], 1000)
order = random.permutation(2000)
x, y = points[order], np.stack([labels, labels], axis=1)[order]  # both outputs learn the label
start = {"w1": random.normal(size=(2, 10)), "w2": random.normal(size=(10, 2))}

data = cgprimer.Dataset.from_arrays(inputs={"x": x}, targets={"y_pred": y})
run = cgprimer.train(
    graph, data, start=start, optimizer="sgd", learning_rate=1e-6, schedule="constant",
    epochs=1, batch_size=1, shuffle=False,
)  # fmt: skip
print(f"loss {run.start_loss:.4f} -> {run.loss:.4f} in {run.steps:,} steps of one sample")

w1, w2 = start["w1"].copy(), start["w2"].copy()
for one, label in zip(x, y, strict=True):
    h = one @ w1
    h_relu = np.maximum(h, 0)
    grad_y = 2 * (h_relu @ w2 - label)  # 1. back from the loss
    grad_w2 = np.outer(h_relu, grad_y)  # 2. through the second layer
    grad_h = np.where(h > 0, grad_y @ w2.T, 0)
    grad_w1 = np.outer(one, grad_h)  # 3. through the first
    w1, w2 = w1 - 1e-6 * grad_w1, w2 - 1e-6 * grad_w2
apart = max(abs(run.parameters[n] - w).max() for n, w in (("w1", w1), ("w2", w2)))
print(f"by hand, the same weights up to {apart:.0e}")
