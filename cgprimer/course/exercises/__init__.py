"""Exercise sheets, sampled from a seed and rendered in several formats, always without answers.

The reference answers are computed by :mod:`cgprimer.course.checks`, for solutions and for grading.
"""
