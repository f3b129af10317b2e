"""A page that plays the events of a distributed training run."""
