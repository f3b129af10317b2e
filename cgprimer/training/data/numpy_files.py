"""Numpy files (NPZ and NPY): only the requested arrays are read, memory-mapped if possible."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cgprimer.errors import DataError
from cgprimer.training.data.dataset_columns import ROWS, Array, Source

# Data that decompress to more than both limits are refused.
_MAXIMUM_RATIO = 100  # decompressed size relative to the compressed size
_LARGE = 1 << 28  # bytes


class NumpyFile(Source):
    """An NPZ file of named arrays, or an NPY file of records, as a data source.

    Uncompressed arrays are memory-mapped.
    """

    has_roles = True

    def __init__(self, path: Path) -> None:
        self.path, self.location, self._arrays = path, str(path), dict[str, Array]()
        with path.open("rb") as file:
            start = file.read(6)
            try:
                if start == b"\x93NUMPY":
                    records = np.load(path, mmap_mode="r", allow_pickle=False)
                    names = records.dtype.names
                    if not names:
                        hint = "save named arrays: np.savez(path, xa=..., xw=...)"
                        raise DataError(f"{path} contains a single unnamed array", hint=hint)
                    self._arrays = {name: records[name] for name in names}
                    self.names = list(names)
                else:
                    with zipfile.ZipFile(file) as archive:
                        listed = archive.namelist()
                    self.names = [name.removesuffix(".npy") for name in listed]
            except (DataError, OSError):
                raise
            except Exception as error:  # errors of numpy and zipfile have no common base class
                raise DataError(f"{path} is not a valid .npz or .npy file") from error

    def __reduce__(self) -> Any:
        return NumpyFile, (self.path.absolute(),)  # opened again after unpickling

    def block_lengths(self, names: Sequence[str]) -> list[int]:
        """Return the number of samples in each block."""
        return [end - start for start, end in self._split_into_blocks(names)]

    def _split_into_blocks(self, names: Sequence[str]) -> list[tuple[int, int]]:
        """Return the start and end index of each block; raise DataError for invalid columns."""
        self._open_arrays(names)
        lengths = {n: self._arrays[n].shape[:1] for n in names}
        if scalars := [n for n, shape in lengths.items() if not shape]:
            message = f"column {scalars[0]!r} must have one value per sample, got 0 dimensions"
            raise DataError(f"{self.path}: {message}")
        if empty := [n for n, shape in lengths.items() if shape[0] and not self._arrays[n].size]:
            raise DataError(f"{self.path}: column {empty[0]!r} has no elements")
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{n} {shape[0]}" for n, shape in lengths.items())
            raise DataError(f"{self.path}: columns must have equal lengths, got {listed}")
        length = min(shape[0] for shape in lengths.values())
        count = max(1, -(-length // ROWS))
        return list(pairwise(length * k // count for k in range(count + 1)))

    def read_block(self, block: int, names: Sequence[str]) -> list[Array]:
        """Return the requested columns of one block; see :meth:`Source.read_block`."""
        start, end = self._split_into_blocks(names)[block]
        return [self._arrays[name][start:end] for name in names]

    def _open_arrays(self, names: Sequence[str]) -> None:
        """Memory-map or read the arrays with the given names from an NPZ file."""
        if not (missing := [name for name in names if name not in self._arrays]):
            return
        try:
            with self.path.open("rb") as file, zipfile.ZipFile(file) as archive:
                infos = {i.filename.removesuffix(".npy"): i for i in archive.infolist()}
                headers = {name: _read_array_header(archive, infos[name]) for name in missing}
                decompressed = sum(
                    math.prod(shape) * kind.itemsize for shape, _, kind, _ in headers.values()
                )
                compressed = sum(infos[name].compress_size for name in missing)
                if decompressed > max(_LARGE, _MAXIMUM_RATIO * compressed):
                    message = f"refused to read {self.path}: {compressed:,} bytes decompress to "
                    hint = "save the arrays uncompressed, with np.savez"
                    raise DataError(f"{message}{decompressed:,} bytes", hint=hint)
                for name, (shape, fortran, kind, size) in headers.items():
                    info = infos[name]
                    if math.prod(shape) * kind.itemsize + size != info.file_size or kind.hasobject:
                        raise ValueError
                    if info.compress_type == zipfile.ZIP_STORED and math.prod(shape):
                        begin = _find_member_data(file, info) + size
                        order: Any = "F" if fortran else "C"
                        mapped = np.memmap(self.path, kind, "r", begin, shape, order)
                        self._arrays[name] = mapped
                    else:
                        with archive.open(info) as member:
                            self._arrays[name] = np.lib.format.read_array(
                                member, allow_pickle=False
                            )
        except (DataError, OSError):
            raise
        except Exception as error:
            raise DataError(f"{self.path} is not a valid .npz or .npy file") from error


def _read_array_header(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> tuple[Any, bool, Any, int]:
    """Return the shape, Fortran order flag, dtype and header size of an array in an NPZ file."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        return *read(member), member.tell()


def _find_member_data(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Return the file offset of an uncompressed ZIP member's data.

    Source: section 4.3.7 of the ZIP specification (APPNOTE.TXT).
    """
    file.seek(info.header_offset + 26)
    sizes = file.read(4)
    name, extra = (int.from_bytes(sizes[k : k + 2], "little") for k in (0, 2))
    return info.header_offset + 30 + name + extra
