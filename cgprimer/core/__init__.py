"""Text to gradient: language, primitives, graph, tape, methods, a plain engine."""
