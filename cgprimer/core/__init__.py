"""From text to gradient: language, operations, graph, tape, methods and the plain evaluator.

The package imports only `cgprimer.errors` and `cgprimer.support`, and numpy when arrays are used.
Start with `derivatives.py`, whose `gradient` goes through all of it in the order of the ideas.
"""
