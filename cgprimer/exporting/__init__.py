"""Export: a graph and its derivative program as source text in other languages."""
