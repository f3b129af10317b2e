"""The progress of a training run as a page and as an animation: boundary, loss, parameters."""
