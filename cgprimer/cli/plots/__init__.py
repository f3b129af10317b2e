"""Commands of ``cgprimer plot``: one file per kind of plot."""
