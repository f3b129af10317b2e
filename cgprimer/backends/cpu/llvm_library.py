"""Compilation and loading of LLVM modules, with llvmlite.

Object code is cached on disk (see :mod:`cgprimer.support.disk_cache`). The key consists of the
module's key, the version of LLVM, and the processor with its features.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cgprimer.errors import UsageError
from cgprimer.support.disk_cache import (
    compute_cache_key,
    fingerprint_package,
    load_or_compute,
    memory_caching_enabled,
)

VECTORS = "CGPRIMER_VECTORS"  # environment: bits of a vector, 64 (no vectors) to 512


@dataclass(frozen=True, slots=True)
class TargetProcessor:
    """Description of the processor for which LLVM generates code."""

    name: str  #: LLVM's name of the processor; empty for the generic processor
    features: str  #: LLVM's feature string
    bits: int  #: width of a vector register; 64 means no vectors
    registers: int  #: number of vector registers

    def count_lanes(self, dtype: str) -> int:
        """Return the number of elements of a dtype in a vector register.

        >>> TargetProcessor("", "", 256, 16).count_lanes("float32")
        8
        """
        return max(1, self.bits // (64 if dtype == "float64" else 32)) if self.bits > 64 else 1


def explain_unavailability() -> str:
    """Return the reason why LLVM cannot be loaded, or an empty string if it can."""
    try:
        import llvmlite.binding  # noqa: F401
    except Exception as error:  # a broken shared library may raise any exception
        if isinstance(error, ModuleNotFoundError) and error.name == "llvmlite":
            return "llvmlite is not installed (cgprimer installs it if a wheel is available)"
        return f"the package llvmlite cannot be imported ({error})"
    return ""


@cache
def get_target_processor() -> TargetProcessor:
    """Return the host processor and its vector width, which an environment variable can limit."""
    from llvmlite import binding

    requested = os.environ.get(VECTORS, "").strip()
    if requested not in ("", "64", "128", "256", "512"):
        raise UsageError(
            f"{VECTORS} must be 64 (no vectors), 128, 256 or 512 bits, got {requested!r}"
        )
    bits = int(requested or 0)
    features = dict(binding.get_host_cpu_features())
    widest = 128
    if features.get("avx"):
        widest = 256
    if features.get("avx512f") and features.get("avx512dq"):
        widest = 512
    if not bits or bits >= widest:
        return TargetProcessor(
            binding.get_host_cpu_name(),
            binding.get_host_cpu_features().flatten(),
            widest,
            32 if widest == 512 or not binding.get_process_triple().startswith("x86") else 16,
        )
    if bits >= 256:
        without = [name for name in features if name.startswith(("avx512", "avx10"))]
        limited_features = ",".join(
            f"{'+' if on and name not in without else '-'}{name}" for name, on in features.items()
        )
        return TargetProcessor(binding.get_host_cpu_name(), limited_features, 256, 16)
    return TargetProcessor("", "", 128 if bits >= 128 else 64, 16)


def _create_target_machine() -> Any:
    """Create the LLVM target machine that generates code for the target processor.

    Each LLVM engine owns its target machine and destroys it.
    """
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    processor = get_target_processor()
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        cpu=processor.name, features=processor.features, opt=2, jit=True
    )


_LOADED: dict[tuple[str, str, TargetProcessor], Any] = {}
_MAX_LOADED = 256  # libraries per process, about 20 kilobytes each


class CompiledLibrary:
    """An LLVM module that is compiled and loaded into memory.

    Args:
        name: name of the files in the cache.
        key: a string that determines the code, together with LLVM and the processor.
        generate: returns the LLVM IR; called only if the object code is not in the cache.
    """

    def __init__(self, name: str, key: str, generate: Callable[[], str]) -> None:
        processor = get_target_processor()
        if (loaded := _LOADED.get((name, key, processor))) and memory_caching_enabled():
            self._engine = loaded  # loading the code again would take a millisecond
            return
        from llvmlite import binding

        from cgprimer.backends.cpu.primitive_ir import register_c_functions

        register_c_functions()
        cache_key = compute_cache_key(
            fingerprint_package(), key, repr(binding.llvm_version_info), processor.name,
            processor.features, binding.get_process_triple(), str(processor.bits),
        )  # fmt: skip
        data = load_or_compute(name, cache_key, lambda: _compile_module(generate()))
        machine = _create_target_machine()
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(data))
        self._engine.finalize_object()
        if len(_LOADED) < _MAX_LOADED:
            _LOADED[name, key, processor] = self._engine

    def get_address(self, function: str) -> int:
        """Return the address of a compiled function with the given name."""
        return int(self._engine.get_function_address(function))


def _compile_module(llvm_ir: str) -> bytes:
    """Compile LLVM IR to object code."""
    from llvmlite import binding

    machine = _create_target_machine()
    module = binding.parse_assembly(llvm_ir)
    module.verify()
    return bytes(machine.emit_object(module))
