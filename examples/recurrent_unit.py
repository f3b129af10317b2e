"""A recurrent unit: a loop over time steps, unrolled by running it.

Topic: Recorded Python (intermediate)
Teaches: Every iteration of a loop is recorded; w and u are used in each step, so their derivatives
are sums over the steps (backpropagation through time).
Source: the lectures' h = tanh(w*h + u*x), with w = 0.5, u = 1, x = 1, 2, 3 and h = 0 initially.
Run: python examples/recurrent_unit.py
"""

import cgprimer


def unit(w, u, steps):
    h = 0.0
    for x in range(1, steps + 1):  # an ordinary loop: a graph of as many steps as there are
        h = (w * h + u * x).tanh()
    return h


for steps in (1, 2, 3):
    recording = cgprimer.record(unit, 0.5, 1.0, steps)
    print(f"# {steps} step{'s' if steps > 1 else ''}")
    print(recording)
    print(f"h = {recording.value:.15f}")
    for name, slope in cgprimer.gradient(recording.graph).items():
        print(f"dh/d{name} = {slope:.15f}")
    print()

print("# the derivatives of the function itself, with no graph in sight")
print(cgprimer.grad(unit, (0, 1))(0.5, 1.0, 3))
