"""``cgprimer check KIND``: a module for each kind."""
