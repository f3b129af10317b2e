"""Compile the CPU engine's operations into loops over arrays, and run them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from llvmlite import binding, ir

from cgprimer.backends.cpu.primitive_ir import PrimitiveEmitter, register_c_functions

Write = Callable[
    [PrimitiveEmitter, Any, list[Any]], list[Any]
]  # emitter, builder, operands: results
COUNT = ir.IntType(64)
POINTER = ir.PointerType()


class Kernels:
    """Functions over arrays, compiled for this processor or a plainer one."""

    def __init__(
        self,
        operations: Iterable[tuple[str, int, int, Write]],
        dtype: str,
        width: int,
        *,
        inline: bool = False,
        passes: int = 0,
        cpu: str | None = None,
    ) -> None:
        self.dtype, self.width = np.dtype(dtype), width
        self.module = ir.Module(f"test_{dtype}_{width}")
        emitter = PrimitiveEmitter(self.module, dtype, width, inline=inline)
        self.shapes: dict[str, tuple[int, int]] = {}
        for name, operands, results, write in operations:
            self.shapes[name] = (operands, results)
            _loop(emitter, name, operands, results, write)
        self._compile(passes, cpu)

    def _compile(self, passes: int, cpu: str | None) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        register_c_functions()
        features = binding.get_host_cpu_features().flatten() if cpu is None else ""
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name() if cpu is None else cpu,
            features=features, opt=2, jit=True,
        )  # fmt: skip
        module = binding.parse_assembly(str(self.module))
        module.verify()
        if passes:
            options = binding.create_pipeline_tuning_options(speed_level=passes)
            builder = binding.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
        self.engine = binding.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()

    def address(self, name: str) -> int:
        return int(self.engine.get_function_address(f"run_{name}"))

    def __call__(self, name: str, *operands: Any) -> Any:
        """The results for arrays of any length: the last vector is filled up with ones."""
        arrays = np.broadcast_arrays(*(np.asarray(o, self.dtype) for o in operands))
        count = arrays[0].size
        full = -(-count // self.width) * self.width
        given = [np.ones(full, self.dtype) for _ in arrays]
        for target, source in zip(given, arrays, strict=True):
            target[:count] = source
        _, results = self.shapes[name]
        made = [np.empty(full, self.dtype) for _ in range(results)]
        pointers = [a.ctypes.data for a in (*given, *made)]
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), ctypes.c_int64)
        kind(self.address(name))(*pointers, full)
        trimmed = [m[:count] for m in made]
        return trimmed[0] if results == 1 else tuple(trimmed)


def _loop(emitter: PrimitiveEmitter, name: str, operands: int, results: int, write: Write) -> None:
    kind = ir.FunctionType(ir.VoidType(), [POINTER] * (operands + results) + [COUNT])
    function = ir.Function(emitter.module, kind, f"run_{name}")
    entry, loop, end = (function.append_basic_block(n) for n in ("entry", "loop", "end"))
    build = ir.IRBuilder(entry)
    build.branch(loop)
    build.position_at_end(loop)
    at = build.phi(COUNT)
    element = emitter.format.scalar_type

    def place(i: int) -> Any:
        return build.gep(function.args[i], [at], source_etype=element)

    given = [
        build.load(place(i), typ=emitter.type, align=emitter.format.bits // 8)
        for i in range(operands)
    ]
    for i, value in enumerate(write(emitter, build, given)):
        build.store(value, place(operands + i), align=emitter.format.bits // 8)
    following = build.add(at, COUNT(emitter.width))
    at.add_incoming(COUNT(0), entry)
    at.add_incoming(following, build.block)
    build.cbranch(build.icmp_signed("<", following, function.args[-1]), loop, end)
    build.position_at_end(end)
    build.ret_void()


def applied(name: str) -> Write:
    """The operation that ``PrimitiveEmitter.emit`` writes."""
    return lambda emitter, builder, operands: [emitter.emit(builder, name, *operands)]


def with_exponent(exponent: float) -> Write:
    """A power whose exponent is known while the code is written."""
    from cgprimer.backends.cpu.vector_ir import splat_constant

    return lambda emitter, builder, operands: [
        emitter.emit(builder, "pow", operands[0], splat_constant(emitter.type, exponent))
    ]


def sine_and_cosine(emitter: PrimitiveEmitter, builder: Any, operands: list[Any]) -> list[Any]:
    """Both, from one reduction."""
    return list(emitter.emit_sincos(builder, operands[0]))
