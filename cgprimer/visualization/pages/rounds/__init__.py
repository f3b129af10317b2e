"""The first rounds of several workers as a page that plays their events."""
