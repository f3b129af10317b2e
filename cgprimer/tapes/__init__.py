"""The tape: a straight-line program in single-assignment form, and what is done to tapes.

The room is called ``tapes`` and not ``tape`` because :func:`cgprimer.tape` is a public function.
"""
