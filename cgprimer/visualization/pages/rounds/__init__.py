"""What many workers do, moment by moment."""
