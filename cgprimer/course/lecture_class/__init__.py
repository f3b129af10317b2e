"""The class of the lecture, its networks, and what its training prints and draws."""
