"""A graph from running code: wrapped functions of numpy create nodes.

Topic: Recorded Python (introductory)
Teaches: A node stores its function, its value and its parents; a backward pass needs nothing else.
Source: CS 6406, second lecture: the sigmoid of 1.5 in four functions of numpy.
Run: python examples/wrapped_functions.py
"""

import numpy as np

from cgprimer import Node, primitive, record

multiply, exp, add, divide = map(primitive, (np.multiply, np.exp, np.add, np.divide))

z = Node(1.5, name="z")
t1 = multiply(z, -1.0)
t2 = exp(t1)
t3 = add(t2, 1.0)
y = divide(1.0, t3)
for node in (t1, t2, t3, y):
    print(node.value)
print(f"Final answer: {y.value:.3f}")

print("\n# the last node, with its parents and theirs")
print(y)

y.backward()
print("\n# dy/dz, by one backward pass:", z.grad)


def sigmoid(z):
    return 1.0 / (np.exp(-z) + 1.0)


print("\n# the same from a plain function of numpy")
print(record(sigmoid, 1.5))
