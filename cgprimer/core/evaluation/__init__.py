"""Running tapes: the plain evaluator, the interface of an engine, and the choice of an engine.

Start with `runner.py`: it contains the loop over a tape's instructions and runs derivative
programs.
"""
