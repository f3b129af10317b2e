"""One file per section of docs/internals/performance.md, with its tables and their measurement."""
