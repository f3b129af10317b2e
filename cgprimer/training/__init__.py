"""Training: losses, optimizers, the loop, and what the data can tell about the parameters."""
