"""Problem sheets: drawn from a seed, written in several formats; answers are never written.

What is right is worked out by :mod:`cgprimer.checking`, anew for the solution and for the grader.
"""
