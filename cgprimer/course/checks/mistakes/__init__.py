"""Known mistakes in derivatives, and the values that each of them predicts.

A mistake changes one rule of reverse mode (:mod:`~.reverse_rules`), and core's own reverse sweep
computes the gradient that it leads to. The values of a student are compared with these predictions.
"""
