"""Protections of the Linux kernel, one module each, applied before a submission runs.

The modules are loaded by their paths in the sandboxed process (:mod:`cgprimer.checking.confined`);
they import nothing of cgprimer and work on their own. Start reading at
:mod:`cgprimer.checking.kernel.namespaces`.
"""
