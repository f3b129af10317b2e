"""Graphs recorded from running Python code, with the interface of PyTorch and HIPS autograd.

The package holds ``Value`` and its backward pass, the transforms ``grad``, ``jacobian`` and
``hessian``, ``record``, ``Function``, ``checkpoint`` and ``memory``. It imports from ``errors``,
``support`` and ``core``. Start reading at :mod:`cgprimer.recording.value`, then
:mod:`cgprimer.recording.eager_builder` and :mod:`cgprimer.recording.backward_pass`.
"""
