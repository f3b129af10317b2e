"""Nonlinear least squares: what fits a graph's parameters to data, and how sure one can be."""
