"""A page for large graphs, on which groups of vertices open and close."""
