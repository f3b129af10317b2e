"""Protections of the Linux kernel, one module each, applied before a submission runs.

The sandboxed process (:mod:`cgprimer.course.checks.confined`) loads this package by its path.
Its modules import nothing from cgprimer except each other. Start reading at
:mod:`cgprimer.course.checks.kernel.namespaces`.
"""

from . import landlock, namespaces, processes, seccomp, users

__all__ = ["landlock", "namespaces", "processes", "seccomp", "users"]
