"""How a tape becomes numbers: the engines, and the runs that a derivative program asks for.

The room is called ``execution`` and not ``engines`` because :func:`cgprimer.engines` is a public
function.
"""
