"""LLVM, through llvmlite: from a module of intermediate code to functions that can be called.

Object code is kept on disk (see :mod:`cgprimer.cache`) under a key of the module's own text, the
version of LLVM, and the processor with its features.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cgprimer.cache import in_memory, kept, key_of, package_state
from cgprimer.errors import UsageError

VECTORS = "CGPRIMER_VECTORS"  # environment: bits of a vector, 64 (no vectors) to 512


@dataclass(frozen=True, slots=True)
class Processor:
    """What code is made for."""

    name: str  #: LLVM's name of it; empty for any of its family
    features: str  #: LLVM's list
    bits: int  #: of a vector register; 64 if none holds two numbers
    registers: int  #: vector registers that there are

    def lanes(self, dtype: str) -> int:
        """Numbers in a vector.

        >>> Processor("", "", 256, 16).lanes("float32")
        8
        """
        return max(1, self.bits // (64 if dtype == "float64" else 32)) if self.bits > 64 else 1


def unavailable() -> str:
    """Why LLVM cannot be used here; empty if it can."""
    try:
        import llvmlite.binding  # noqa: F401
    except Exception as error:  # a broken shared library raises whatever it likes
        if isinstance(error, ModuleNotFoundError) and error.name == "llvmlite":
            return "llvmlite is not installed; it comes with cgprimer where there is a wheel of it"
        return f"the package llvmlite cannot be imported ({error})"
    return ""


@cache
def processor() -> Processor:
    """This machine's processor, or the plainer one that the environment asks for."""
    from llvmlite import binding

    asked = os.environ.get(VECTORS, "").strip()
    if asked not in ("", "64", "128", "256", "512"):
        raise UsageError(f"{VECTORS} is 64 (no vectors), 128, 256 or 512 bits, not {asked!r}")
    bits = int(asked or 0)
    features = dict(binding.get_host_cpu_features())
    widest = 128
    if features.get("avx"):
        widest = 256
    if features.get("avx512f") and features.get("avx512dq"):
        widest = 512
    if not bits or bits >= widest:
        return Processor(
            binding.get_host_cpu_name(),
            binding.get_host_cpu_features().flatten(),
            widest,
            32 if widest == 512 or not binding.get_process_triple().startswith("x86") else 16,
        )
    if bits >= 256:
        without = [name for name in features if name.startswith(("avx512", "avx10"))]
        plainer = ",".join(
            f"{'+' if on and name not in without else '-'}{name}" for name, on in features.items()
        )
        return Processor(binding.get_host_cpu_name(), plainer, 256, 16)
    return Processor("", "", 128 if bits >= 128 else 64, 16)


def _target() -> Any:
    """A description of the processor for LLVM. Each engine owns one and destroys it."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    chosen = processor()
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        cpu=chosen.name, features=chosen.features, opt=2, jit=True
    )


_LOADED: dict[tuple[str, str, int, Processor], Any] = {}
_MOST_LOADED = 256  # libraries that a process keeps, some 20 kilobytes each


class Library:
    """Functions of loaded object code; they live as long as this object.

    Args:
        name: of the module, for people who look into the cache.
        key: everything that the code depends on, besides LLVM and the processor.
        text: makes the module's text; called only if the object is not kept yet.
        passes: LLVM's passes over the text: 0 for none, or 1 to 3.
    """

    def __init__(self, name: str, key: str, text: Callable[[], str], *, passes: int = 0) -> None:
        chosen = processor()
        if (known := _LOADED.get((name, key, passes, chosen))) and in_memory():
            self._engine = known  # of this process: loading it again takes a millisecond
            return
        from llvmlite import binding

        from cgprimer.native.cpu.operations import register_symbols

        register_symbols()
        full = key_of(
            package_state(), key, repr(binding.llvm_version_info), chosen.name, chosen.features,
            binding.get_process_triple(), str(passes), str(chosen.bits),
        )  # fmt: skip

        def compiled() -> bytes:
            machine = _target()
            module = binding.parse_assembly(text())
            module.verify()
            if passes:
                options = binding.create_pipeline_tuning_options(speed_level=passes)
                builder = binding.create_pass_builder(machine, options)
                builder.getModulePassManager().run(module, builder)
            return bytes(machine.emit_object(module))

        data = kept(name, full, compiled)
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target())
        self._engine.add_object_file(binding.ObjectFileRef.from_data(data))
        self._engine.finalize_object()
        if len(_LOADED) < _MOST_LOADED:
            _LOADED[name, key, passes, chosen] = self._engine

    def address(self, name: str) -> int:
        """Where a function begins."""
        return int(self._engine.get_function_address(name))
