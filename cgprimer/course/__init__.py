"""Teaching: exercise sheets, checks of submissions, and the class of the lecture.

The package may import every other package except `cli`. Start with `exercises/exercise_sheets.py`,
then `checks/gradient_check.py`.
"""
