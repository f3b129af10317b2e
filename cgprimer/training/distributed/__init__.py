"""Training with several workers: protocols, a simulator, and workers of dask.distributed."""
