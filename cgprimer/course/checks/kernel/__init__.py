"""Protections of the Linux kernel, one module each, applied before a submission runs.

The modules are loaded by their paths in the sandboxed process
(:mod:`cgprimer.course.checks.confined`). They import nothing of cgprimer. Start reading at
:mod:`cgprimer.course.checks.kernel.namespaces`.
"""
