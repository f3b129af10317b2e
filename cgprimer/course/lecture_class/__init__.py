"""The class of the lecture: its networks, its training, and the output of its training."""
