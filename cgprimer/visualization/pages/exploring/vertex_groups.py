"""Groups of the vertices of a large graph: by prefixes of names, or by ranges in topological order.

Vertices whose names begin with the same parts, such as ``xh1_1`` and ``xh1_2``, form a group. The
edges between the members of one group never form a cycle: if groups by name would depend on each
other, as for the values ``i1, f1, c1, i2, f2, ...`` of a recurrent network, ranges of consecutive
vertices replace these groups. No group has more than 64 members.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

MAX_MEMBERS = 64  # of a group; graphs with no more vertices have no groups
MAX_VISIBLE = 40  # boxes of the first drawing
_PARTS = re.compile(r"[^\W\d_]+|\d+")


@dataclass(frozen=True, slots=True)
class VertexGroup:
    """A group of vertices.

    Attributes:
        label: the common part of the names, or the first and last name.
        members: indices of vertices, and groups, in topological order.
        starts_closed: True for a range of a longer sequence, and for some predefined groups.
    """

    label: str
    members: tuple[int | VertexGroup, ...]
    starts_closed: bool = False


def group_vertices(
    names: Sequence[str],
    edges: Sequence[tuple[int, int]],
    parts: Sequence[tuple[str, Sequence[int]]] = (),
    closed: bool = False,
) -> VertexGroup:
    """Group the vertices of a graph by their names.

    Args:
        names: the name of each vertex; several vertices may have the same name.
        edges: pairs of indices of vertices, tail and head, without cycles.
        parts: labels and vertices of predefined groups, which are disjoint.
        closed: True if the predefined groups start closed.

    Returns:
        The group of all vertices, in which every vertex occurs once.

    >>> names = [f"{prefix}_{k}" for prefix in ("xa", "xb") for k in range(1, 61)]
    >>> [group.label for group in group_vertices(names, [(0, 60)]).members]
    ['xa_*', 'xb_*']
    >>> chain = group_vertices([f"x{k}" for k in range(100)], [(k, k + 1) for k in range(99)])
    >>> [group.label for group in chain.members][-1], chain.members[0].members
    ('x90 … x99', (0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
    """
    grouping = _Grouping(names, edges)
    part_vertices = {vertex for _, vertices in parts for vertex in vertices}
    rest = [vertex for vertex in range(len(names)) if vertex not in part_vertices]
    groups = [grouping.build_group(label, [*vertices], closed) for label, vertices in parts]
    return VertexGroup("", (*groups, *grouping.split(rest)))


def choose_open_groups(root: VertexGroup, visible: int = MAX_VISIBLE) -> list[VertexGroup]:
    """Choose the groups that are open in the first drawing, which shows at most `visible` boxes.

    Outer groups are opened before inner groups, and small groups first. Ranges stay closed.

    >>> root = VertexGroup("", (VertexGroup("xa*", (0, 1)), VertexGroup("xb*", (2, 3, 4))))
    >>> [group.label for group in choose_open_groups(root, 4)]
    ['xa*']
    """
    count, result = len(root.members), []
    level = [member for member in root.members if isinstance(member, VertexGroup)]
    while level:
        opened = []
        for group in sorted(level, key=lambda group: len(group.members)):
            if not group.starts_closed and count + len(group.members) - 1 <= visible:
                count += len(group.members) - 1
                opened.append(group)
        result += opened
        level = [m for group in opened for m in group.members if isinstance(m, VertexGroup)]
    return result


class _Grouping:
    """A graph whose vertices are grouped: their names, the parts of the names, and the edges."""

    def __init__(self, names: Sequence[str], edges: Iterable[tuple[int, int]]) -> None:
        self.names = names
        self.parts = [tuple(_PARTS.findall(name)) or (name,) for name in names]
        self.heads: list[list[int]] = [[] for _ in names]
        for tail, head in edges:
            self.heads[tail].append(head)
        self.position = [0] * len(names)
        for position, vertex in enumerate(_sort_topologically(self.heads)):
            self.position[vertex] = position

    def build_group(
        self, label: str, vertices: list[int], starts_closed: bool = False
    ) -> VertexGroup:
        """Build the group of some vertices."""
        return VertexGroup(label, tuple(self.split(vertices)), starts_closed)

    def split(self, vertices: list[int]) -> list[int | VertexGroup]:
        """Split vertices into at most 64 groups and vertices, in topological order."""
        vertices = sorted(vertices, key=self.position.__getitem__)
        if len(vertices) <= MAX_MEMBERS:
            return list(vertices)
        blocks = self._split_by_name(vertices)
        if len(blocks) == 1:  # the groups by name depend on each other, or all names are equal
            return self._split_into_ranges([[v] for v in vertices])
        return self._split_into_ranges(blocks)

    def _split_by_name(self, vertices: list[int]) -> list[list[int]]:
        """Split vertices by the first part in which their names differ; merge cyclic groups."""
        depth = 0
        while True:
            blocks: dict[tuple[str, ...], list[int]] = {}
            for vertex in vertices:
                blocks.setdefault(self.parts[vertex][depth : depth + 1], []).append(vertex)
            if len(blocks) > 1 or () in blocks:
                break
            depth += 1
        groups = list(blocks.values())
        heads = self._find_heads(groups)
        merged = [
            sorted((v for k in component for v in groups[k]), key=self.position.__getitem__)
            for component in _find_cycles(heads)
        ]
        merged.sort(key=lambda block: self.position[block[0]])
        return [merged[k] for k in _sort_topologically(self._find_heads(merged))]

    def _find_heads(self, blocks: list[list[int]]) -> list[list[int]]:
        """Return for each block the indices of the other blocks to which its edges lead."""
        block_of = {vertex: k for k, block in enumerate(blocks) for vertex in block}
        heads: list[set[int]] = [set() for _ in blocks]
        for vertex, block in block_of.items():
            heads[block].update(block_of[head] for head in self.heads[vertex] if head in block_of)
        return [sorted(row - {block}) for block, row in enumerate(heads)]

    def _split_into_ranges(self, blocks: list[list[int]]) -> list[int | VertexGroup]:
        """Combine consecutive blocks of vertices into ranges until there are at most 64."""
        if len(blocks) <= MAX_MEMBERS:
            return [self._build_member(block) for block in blocks]
        size = 10
        while len(blocks) > MAX_MEMBERS * size:
            size *= 10
        return [
            self._build_range(blocks[start : start + size]) for start in range(0, len(blocks), size)
        ]

    def _build_range(self, blocks: list[list[int]]) -> int | VertexGroup:
        """Build a group of consecutive blocks, or the member for a single block."""
        if len(blocks) == 1:
            return self._build_member(blocks[0])
        vertices = [vertex for block in blocks for vertex in block]
        label = self._format_range(vertices)
        if len(blocks) == len(vertices):
            return self.build_group(label, vertices, starts_closed=True)
        return VertexGroup(label, tuple(self._split_into_ranges(blocks)), starts_closed=True)

    def _build_member(self, block: list[int]) -> int | VertexGroup:
        """Build the group of a block of vertices, or return its only vertex."""
        if len(block) == 1:
            return block[0]
        return self.build_group(self._format_label(block), block)

    def _format_label(self, vertices: Sequence[int]) -> str:
        """Format the label of vertices: the common beginning of their names, or a range."""
        parts = [self.parts[vertex] for vertex in vertices]
        shortest, longest = min(parts), max(parts)
        if shortest == longest:
            return self.names[vertices[0]]
        common = 0
        while common < len(shortest) and shortest[common] == longest[common]:
            common += 1
        name = self.names[vertices[0]]
        ends = [match.end() for match in _PARTS.finditer(name)]
        if not common or len(ends) < common:
            return self._format_range(vertices)
        separator = re.match(r"[\W_]*", name[ends[common - 1] :])
        return f"{name[: ends[common - 1]]}{separator[0] if separator else ''}*"

    def _format_range(self, vertices: Sequence[int]) -> str:
        """Format the first and the last name of consecutive vertices."""
        return f"{self.names[vertices[0]]} … {self.names[vertices[-1]]}"


def _sort_topologically(heads: Sequence[Sequence[int]]) -> list[int]:
    """Return the vertices of a graph in topological order, with the smallest vertex first.

    >>> _sort_topologically([[], [0], [], [2]])
    [1, 0, 3, 2]
    """
    missing = [0] * len(heads)
    for row in heads:
        for head in row:
            missing[head] += 1
    ready = [vertex for vertex, count in enumerate(missing) if not count]
    order = []
    while ready:
        vertex = heappop(ready)
        order.append(vertex)
        for head in heads[vertex]:
            missing[head] -= 1
            if not missing[head]:
                heappush(ready, head)
    return order


def _find_cycles(heads: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components of a directed graph.

    Source: R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1 (1972).

    >>> _find_cycles([[1], [0, 2], []])
    [[2], [0, 1]]
    """
    index: dict[int, int] = {}
    low, open_vertices, components = [0] * len(heads), [], []
    finished: set[int] = set()
    for start in range(len(heads)):
        stack = [] if start in index else [(start, iter(heads[start]))]
        while stack:
            vertex, remaining = stack[-1]
            if vertex not in index:
                index[vertex] = low[vertex] = len(index)
                open_vertices.append(vertex)
            for head in remaining:
                if head not in index:
                    stack.append((head, iter(heads[head])))
                    break
                if head not in finished:
                    low[vertex] = min(low[vertex], index[head])
            else:
                stack.pop()
                if stack:
                    parent = stack[-1][0]
                    low[parent] = min(low[parent], low[vertex])
                if low[vertex] == index[vertex]:
                    component = [open_vertices.pop()]
                    while component[-1] != vertex:
                        component.append(open_vertices.pop())
                    components.append(sorted(component))
                    finished.update(component)
    return components
