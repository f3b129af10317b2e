"""Training with many workers: protocols, and who carries them out."""
