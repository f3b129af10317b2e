"""Files of numpy's arrays, NPZ and NPY: only those asked for are read, mapped where they can be."""

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

_BOMB = 100  # times the size of a file: data that unpack to more, and to more than ...
_LARGE = 1 << 28  # ... bytes, are refused


class NumpyFile(Source):
    """Arrays by name: those of an NPZ file, or the fields of the records in an NPY file.

    Arrays that are not compressed stay in the file, and are mapped into memory.
    """

    roles = True

    def __init__(self, path: Path) -> None:
        self.path, self.place, self._arrays = path, str(path), dict[str, Array]()
        with path.open("rb") as file:
            start = file.read(6)
            try:
                if start == b"\x93NUMPY":
                    records = np.load(path, mmap_mode="r", allow_pickle=False)
                    names = records.dtype.names
                    if not names:
                        hint = "arrays with names: np.savez(path, xa=..., xw=...)"
                        raise DataError(f"{path} holds one array without names", hint=hint)
                    self._arrays = {name: records[name] for name in names}
                    self.names = list(names)
                else:
                    with zipfile.ZipFile(file) as archive:
                        listed = archive.namelist()
                    self.names = [name.removesuffix(".npy") for name in listed]
            except (DataError, OSError):
                raise
            except Exception as error:  # numpy's and zipfile's have no common base
                raise DataError(f"{path} is not a file of numpy arrays") from error

    def __reduce__(self) -> Any:
        return NumpyFile, (self.path.absolute(),)  # opened anew where it arrives

    def lengths(self, names: Sequence[str]) -> list[int]:
        """As of any source."""
        return [end - start for start, end in self._cuts(names)]

    def _cuts(self, names: Sequence[str]) -> list[tuple[int, int]]:
        self._open(names)
        lengths = {n: self._arrays[n].shape[:1] for n in names}
        if wrong := [n for n, shape in lengths.items() if not shape]:
            what = f"the column {wrong[0]!r} has 0 dimensions; a column has a value per sample"
            raise DataError(f"{self.path}: {what}")
        if any(shape[0] and not self._arrays[n].size for n, shape in lengths.items()):
            raise DataError(f"{self.path}: a column holds no numbers")  # of how many samples ever
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{n} {shape[0]}" for n, shape in lengths.items())
            raise DataError(f"{self.path}: the columns have different lengths: {shown}")
        length = min(shape[0] for shape in lengths.values())
        count = max(1, -(-length // ROWS))
        return list(pairwise(length * k // count for k in range(count + 1)))

    def read(self, block: int, names: Sequence[str]) -> list[Array]:
        """As of any source."""
        start, end = self._cuts(names)[block]
        return [self._arrays[name][start:end] for name in names]

    def _open(self, names: Sequence[str]) -> None:
        if not (missing := [name for name in names if name not in self._arrays]):
            return
        try:
            with self.path.open("rb") as file, zipfile.ZipFile(file) as archive:
                infos = {i.filename.removesuffix(".npy"): i for i in archive.infolist()}
                headers = {name: _header(archive, infos[name]) for name in missing}
                whole = sum(
                    math.prod(shape) * kind.itemsize for shape, _, kind, _ in headers.values()
                )
                packed = sum(infos[name].compress_size for name in missing)
                if whole > max(_LARGE, _BOMB * packed):
                    what = f"{packed:,} bytes of {self.path} unpack to {whole:,}"
                    raise DataError(f"{what}: that is refused", hint="np.savez does not compress")
                for name, (shape, fortran, kind, size) in headers.items():
                    info = infos[name]
                    if math.prod(shape) * kind.itemsize + size != info.file_size or kind.hasobject:
                        raise ValueError
                    if info.compress_type == zipfile.ZIP_STORED and math.prod(shape):
                        begin = _start(file, info) + size
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
            raise DataError(f"{self.path} is not a file of numpy arrays") from error


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[Any, bool, Any, int]:
    """Shape, whether it is in Fortran's order, type, and the bytes before the numbers."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        return *read(member), member.tell()


def _start(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Where the bytes of a stored member begin: after its own header, of which two parts vary."""
    file.seek(info.header_offset + 26)
    sizes = file.read(4)
    name, extra = (int.from_bytes(sizes[k : k + 2], "little") for k in (0, 2))
    return info.header_offset + 30 + name + extra
