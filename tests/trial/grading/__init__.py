"""An independent trial of the grader: submissions written without knowledge of its code."""
