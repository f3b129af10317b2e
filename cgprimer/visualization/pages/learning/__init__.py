"""A decision boundary while it moves: a page to be played, and an animation."""
