"""Nonlinear least squares: parameters of a graph from data, with standard errors."""
