"""Dynamic and static graphs: an `if` and a `for` create another graph in every call.

Topic: Recorded Python (intermediate)
Teaches: What running code records, and why a recorded graph is valid only where the same branches
are taken; a function of the language, such as max, contains all branches.
Source: the softmax of the lectures, with loops and conditions.
Run: python examples/dynamic_graph.py
"""

import numpy as np

import cgprimer


def softmax(x):
    top = x[0]
    for i in range(1, len(x)):
        if x[i] > top:  # numbers are compared: the graph never sees this line
            top = x[i]
    powers = np.exp(x - top)
    return powers / powers.sum()


print("# dynamic: recorded at (1, 2, 3), with the lines of Python")
rising = cgprimer.record(softmax, np.array([1.0, 2.0, 3.0]))
print(rising)
print("\n# and at (3, 2, 1): another branch, another graph")
falling = cgprimer.record(softmax, np.array([3.0, 2.0, 1.0]))
print(falling)

print("\n# static: written once, with all branches in it")
static = cgprimer.parse("""
parameter x[3] = [1, 2, 3]
top = max(x)
powers = exp(x - top)
softmax = powers/sum(powers)
output softmax
""")
print(static)

print("\n# all three at (3, 2, 1000): one of them took another branch, and overflows")
point = {"x": [3.0, 2.0, 1000.0]}
for name, graph in {"rising": rising.graph, "falling": falling.graph, "static": static}.items():
    print(f"{name:<8}", graph.evaluate(point)["softmax"])

print("\n# the Jacobian at (1, 2, 3) is diag(s) - s s^T")
s = rising.value
slopes = cgprimer.jacobian(rising.graph)["softmax"]["x"]
print(np.round(slopes, 6))
print("equal:", np.allclose(slopes, np.diag(s) - np.outer(s, s), rtol=1e-12))
