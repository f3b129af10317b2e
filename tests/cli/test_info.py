"""``cgprimer info``: the engines of this machine, and why one of them is not available."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.cuda import device
from tests.cli.cli_tools import good, read_json


def test_engines_are_described_with_their_settings(tmp_path: Path) -> None:
    settings = {"CGPRIMER_CACHE": str(tmp_path), "CGPRIMER_THREADS": "3", "CGPRIMER_VECTORS": "128"}
    found = read_json("info", env=settings)
    assert found["methods"] == list(cgprimer.methods())
    assert found["details"]["numpy"] == {"version": np.__version__}
    cpu = found["details"]["cpu"]
    assert list(cpu) == ["processor", "vectors", "threads", "cache"]
    assert cpu["vectors"].startswith("128 bits (CGPRIMER_VECTORS")
    assert cpu["threads"].startswith("3 (CGPRIMER_THREADS")
    assert cpu["cache"] == f"{tmp_path} (CGPRIMER_CACHE=off disables the cache)"
    for name, state in found["engines"].items():
        assert (name in found["details"]) == (state == "available"), name
    shown = good("info", env={"CGPRIMER_CACHE": "off", "CGPRIMER_VECTORS": "64"})
    assert "    cache: disabled" in shown
    assert "    vectors: none" in shown


def test_the_engine_cpu_without_llvmlite_gives_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    cpu = next(engine for engine in cgprimer.engines() if engine.name == "cpu")
    assert (cpu.available, cpu.detail) == (False, "")
    assert "llvmlite" in cpu.reason


class Driver:
    """NVIDIA's driver for two GPUs, the second of which has failed."""

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def cuDeviceGet(self, handle: Any, number: int) -> int:
        handle._obj.value = number
        return 0

    def cuDeviceGetName(self, name: Any, length: int, handle: ctypes.c_int) -> int:
        name.value = b"NVIDIA H200"
        return 0

    def cuDeviceTotalMem_v2(self, size: Any, handle: ctypes.c_int) -> int:
        size._obj.value = 141 * 2**30
        return 999 * handle.value


def test_gpus_are_listed_with_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "load_driver", Driver)
    monkeypatch.setattr(device, "is_simulated", lambda: False)
    assert device.describe_devices().splitlines()[:2] == [
        "device 0: NVIDIA H200, 141.0 GiB",
        "device 1: unknown GPU (driver error 999)",
    ]
    assert device.MEMORY_VARIABLE in device.describe_devices()
