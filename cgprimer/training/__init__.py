"""Learning parameters from data: losses, optimizers, the training loop, saved runs, fitting.

The package may import `errors`, `support`, `core`, `recording`, `networks`, `backends` and
`analysis`. Start with `loop.py`, whose `train` calls the rest; `data/` has the datasets, `fitting/`
least squares, `distributed/` training with several workers.
"""
