"""Problem sheets: drawn from a seed, written in several formats; answers are never written.

What is right is worked out by :mod:`cgprimer.course.checks`, for the solution and again
for the grader.
"""
