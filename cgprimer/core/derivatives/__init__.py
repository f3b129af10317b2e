"""Derivatives of a graph at a point or at many: gradient, Jacobian, Hessian, partials."""
