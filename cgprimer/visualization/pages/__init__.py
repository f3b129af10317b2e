"""Self-contained pages and slides: a derivative step by step, methods side by side."""
