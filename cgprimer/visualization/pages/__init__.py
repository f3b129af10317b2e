"""Self-contained HTML pages and slides: derivatives step by step, comparisons, training runs."""
