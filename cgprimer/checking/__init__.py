"""Homework: submissions run apart, their answers checked, mistakes named, points counted."""
