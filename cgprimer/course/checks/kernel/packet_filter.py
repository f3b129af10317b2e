"""Assemble programs for the kernel's packet filter, which seccomp(2) runs before system calls.

A program reads one system call (its number, architecture and arguments) and returns what the
kernel does with the call. Jumps lead forward to labels.
Source: https://docs.kernel.org/networking/filter.html
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

# Codes of linux/bpf_common.h: load a word, jump if equal, jump if at least, jump, return.
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _JUMP, _RETURN = 0x20, 0x15, 0x35, 0x05, 0x06


@dataclass
class FilterProgram:
    """A packet filter program under construction, in which jumps refer to labels.

    >>> program = FilterProgram()
    >>> program.load(0)
    >>> program.jump_if_equal(7, "seven")
    >>> program.return_action(0)
    >>> program.label("seven")
    >>> program.return_action(1)
    >>> [struct.unpack("HBBI", bytes) for bytes in program.assemble()]
    [(32, 0, 0, 0), (21, 1, 0, 7), (6, 0, 0, 0), (6, 0, 0, 1)]
    """

    _instructions: list[tuple[int, int, str]] = field(default_factory=list)
    _labels: dict[str, int] = field(default_factory=dict)

    def label(self, name: str) -> None:
        """Place a label at the next instruction, as the target of earlier jumps."""
        self._labels[name] = len(self._instructions)

    def load(self, offset: int) -> None:
        """Append an instruction that loads a 32-bit word of ``struct seccomp_data``."""
        self._instructions.append((_LOAD, offset, ""))

    def jump_if_equal(self, constant: int, label: str) -> None:
        """Append an instruction that jumps to a label if the accumulator equals a constant."""
        self._instructions.append((_JUMP_IF_EQUAL, constant, label))

    def jump_if_at_least(self, constant: int, label: str) -> None:
        """Append an instruction that jumps to a label if the accumulator is >= a constant."""
        self._instructions.append((_JUMP_IF_AT_LEAST, constant, label))

    def jump(self, label: str) -> None:
        """Append an instruction that always jumps to a label."""
        self._instructions.append((_JUMP, 0, label))

    def return_action(self, action: int) -> None:
        """Append an instruction that tells the kernel to allow or refuse the system call."""
        self._instructions.append((_RETURN, action, ""))

    def assemble(self) -> list[bytes]:
        """Assemble the program: return each instruction as a packed ``struct sock_filter``.

        Raises:
            KeyError: a jump to a label that is not defined.
            struct.error: a conditional jump over more than 255 instructions, or a jump backward.
        """
        structs = []
        for position, (code, constant, label) in enumerate(self._instructions):
            distance = self._labels[label] - position - 1 if label else 0
            if code == _JUMP:
                structs.append(struct.pack("HBBI", code, 0, 0, distance))
            else:
                structs.append(struct.pack("HBBI", code, distance, 0, constant))
        return structs
