"""What goes wrong in a sweep: reverse mode with one slip in it, as a tape.

Every slip is reverse mode's own sweep in the hands of a builder that does one thing wrong: it
leaves a factor or a share out, keeps the last share where they should add up, takes a partial at
another place. The gradients of all slips are outputs of one tape, which runs once for all points;
what slips have in common is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, pairwise, product

from cgprimer.core.methods.path_sum import count_paths, list_paths
from cgprimer.core.operations import RESULT, find_primitive
from cgprimer.core.operations.primitive_registry import parse_partial
from cgprimer.course.checks.gradient_questions import Question
from cgprimer.course.checks.sweep_outputs import Candidate, Sweeps
from cgprimer.course.checks.tape_places import Place, grouped
from cgprimer.course.checks.wrong_derivatives import (
    note_constants,
    note_factors,
    note_products,
    note_transposed,
    wrong_derivatives,
)
from cgprimer.course.checks.wrong_sweeps import Slip
from cgprimer.errors import join_names
from cgprimer.expressions import parse_element, unparse
from cgprimer.tapes import Tape

_MOST_PATHS = 40  # from one name
_MOST_WORK = 15_000  # about the adjoints of all slips together
_PIECEWISE = {"max", "min", "where", "clamp", "leaky_relu"}
_NOT_FUNCTIONS = {"neg", "copy", "stop_gradient", "sign", "heaviside", "step"}


def candidates(question: Question) -> tuple[Tape, list[Candidate]]:
    """A tape, and the candidates whose numbers it computes: the simplest come first.

    Candidates without an output for a name say nothing of it.
    """
    made = _Slips(question)
    return made.builder.finish(made.outputs, prune=True), made.found


class _Slips(Sweeps):
    """All slips of a question on one builder."""

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        ways = (
            *(self._losses(), self._functions(), self._averages(), self._accumulations()),
            *(self._inner(), self._branches(), self._signs(), self._stopped()),
        )
        for slip in chain(*ways):
            if self.work < _MOST_WORK:
                self.note(slip.mistake, slip.said, self.sweep(slip))
        self._paths(self.sweep(Slip("", "")))
        self._wrong_derivatives()

    def _wrong_derivatives(self) -> None:
        """Add local rules that are wrong, and forward passes that are, within a budget."""
        start = self.work
        note_products(self)
        for slip in wrong_derivatives(self):
            if self.work - start > _MOST_WORK:
                break
            self.note(slip.mistake, slip.said, self.sweep(slip))
        note_transposed(self)
        note_constants(self)
        note_factors(self)

    # --- what can go wrong -------------------------------------------------------------------

    def _losses(self) -> Iterator[Slip]:
        """The derivative of the loss left out: the error, or the error and its 2."""
        tape, said = self.tape, "the derivative of the loss by {} is left out"
        outputs = self.question.output.split(",")
        vertices = [v for v in self.vertices() if parse_element(tape.labels[v])[0] in outputs]
        if vertices:
            names = join_names(map(self.text, vertices))
            yield Slip("loss factor missing", said.format(names), roots=tuple(vertices))
        loss = [i for i in self.region if i > max(vertices, default=-1)]
        squares = {
            head: inner
            for head in loss
            if vertices or self.owner[head] == self.root
            for name, operands in [self.step(head)]
            for inner in operands[:1]
            if name == "pow" and getattr(tape.instruction(inner), "primitive", "") == "sub"
        }
        for heads in dict.fromkeys((*((h,) for h in squares), tuple(squares))) if squares else ():
            errors = join_names(self.text(squares[h]) for h in heads)
            yield Slip("loss factor missing",
                       f"the error {errors} is left out of the derivative of its square",
                       bare=frozenset((h, 0) for h in heads))  # fmt: skip
        inside = [v for inner in squares.values() for v in self.step(inner).operands]
        predicted = [v for v in inside if v in tape.labels and v in self.region]
        if not vertices and len(predicted) == 1:
            yield Slip(
                "loss factor missing", said.format(self.text(*predicted)), roots=(*predicted,)
            )

    def _functions(self) -> Iterator[Slip]:
        """The derivative of an activation left out: of one, of a line, of all of a kind."""
        called = {
            head: name
            for head in self.region
            for name, operands in [self.step(head)]
            if type(name) is str
            and name not in _NOT_FUNCTIONS
            and (len(operands) == 1 or name in _PIECEWISE)
        }
        applied = [*called]
        groups = {frozenset({head}): f"that of {self.said(head)}" for head in applied}
        for line, heads in grouped(applied, lambda h: parse_element(self.line(h))[0]):
            groups.setdefault(
                heads,
                f"that of {join_names(dict.fromkeys(called[h] for h in sorted(heads)))} in {line}",
            )
        depth: dict[int, int] = {}  # functions on the longest way from the leaves
        for index in range(self.tape.size):
            instruction = self.tape.instruction(index)
            below = max((depth[o] for o in instruction.operands), default=0) if instruction else 0
            depth[index] = below + (index in called)
        for layer, heads in grouped(applied, lambda h: f"{called[h]} of layer {depth[h]}"):
            names = join_names(self.line(h) for h in sorted(heads))
            groups.setdefault(heads, f"that of each {layer}: {names}")
        for kind, heads in grouped(applied, called.__getitem__):
            groups.setdefault(heads, f"that of each {kind}")
        groups.setdefault(frozenset(applied), "that of each function")
        for heads, said in groups.items():
            if heads:
                yield Slip("activation derivative missing",
                           f"the derivative of a function is left out: {said}",
                           bare=frozenset((h, w) for h in heads for w in (0, 1, 2)))  # fmt: skip
        whole = self._written_out()
        for lines in [*({v: u} for v, u in whole.items()), *([whole] if len(whole) > 1 else [])]:
            names = join_names(f"{self.text(v)} by {self.text(u)}" for v, u in lines.items())
            yield Slip("activation derivative missing", f"the derivative of {names} is left out",
                       passed=lines)  # fmt: skip
        for head, which, tail in self.shares:
            if self.step(head)[0] == "mul":
                yield Slip("inner derivative missing",
                           f"the derivative of {self.text(head)} by {self.text(tail)} is left out",
                           bare=frozenset({(head, which)}))  # fmt: skip
        for head in self.region:
            name, operands = self.step(head)
            if name == "pow" and not self.active[operands[1]]:
                inner = head != self.root and operands[0] < len(self.tape.leaves)
                yield Slip("inner derivative missing" if inner else "outer derivative missing",
                           f"the derivative of the power {self.said(head)} is left out",
                           bare=frozenset({(head, 0)}))  # fmt: skip

    def _written_out(self) -> dict[int, int]:
        """Variables with several operations in their line, and the only one that they depend on."""
        found: dict[int, int] = {}
        for vertex in self.vertices():
            own = [(h, tail) for h, _, tail in self.shares if self.owner[h] == vertex]
            tails = {tail for _, tail in own if self.owner[tail] != vertex}
            if vertex != self.root and len(tails) == 1 and len({h for h, _ in own}) > 1:
                found[vertex] = tails.pop()
        return found

    def _averages(self) -> Iterator[Slip]:
        """Products of averages over the batch, where the average of products is asked for."""
        if not self.question.batch:
            return
        sources = {*self.sources.values()}
        last = {(head, which) for head, which, tail in self.shares if tail in sources}
        said = "the adjoint and the {} are averaged over the batch before they are multiplied"
        yield Slip("product of averages", said.format("last factor"), averaged=frozenset(last))
        for vertex in self.vertices():
            own = {(h, w) for h, w, _ in self.shares if h == vertex}
            name = self.tape.labels[vertex]
            yield Slip("product of averages", said.format(f"derivative of {name}"),
                       averaged=frozenset(own))  # fmt: skip

    def _accumulations(self) -> Iterator[Slip]:
        """``=`` instead of ``+=``."""
        sources = frozenset(self.sources.values())
        whose = [("a vertex", frozenset[int](), deep) for deep in (False, True)]
        whose += [(self.text(tail), frozenset({tail}), False) for tail in self.merging()]
        whose += [("each parameter", sources, False)]
        if inner := frozenset(tail for _, _, tail in self.shares) - sources:
            whose += [("each variable", inner, False)]
        for (name, of, deep), keeps in product(whose, ("last step", "last", "first")):
            said = f"{name} keeps its {keeps.split()[0]} contribution instead of their sum"
            yield Slip("= instead of +=", said, keeps=keeps, of=of, deep=deep)

    def _inner(self) -> Iterator[Slip]:
        """The derivative of an outer function taken at another place than its inner one."""
        kinds: dict[str, dict[int, tuple[tuple[int, ...], int]]] = {}
        for head in self.region:
            name, operands = self.step(head)
            if type(name) is not str or name in _NOT_FUNCTIONS or name in ("add", "sub", "mul"):
                continue
            one = len(operands) == 1 or (name == "pow" and not self.active[operands[1]])
            if not one:
                continue
            values = [self.value[o] for o in operands]
            for place in self.beneath(operands[0]):
                taken = (self.value[place], *values[1:])
                yield Slip("inner function not evaluated",
                           f"the derivative of {self.said(head)} is taken at {self.text(place)}"
                           f" instead of {self.text(operands[0])}",
                           elsewhere={head: (taken, self.builder.emit(name, *taken))})  # fmt: skip
            if len(operands) > 1:
                continue
            out, text = self.value[head], self.text(head)
            again = self.builder.emit(name, out)
            kinds.setdefault(name, {})[head] = (out,), again
            yield Slip("derivative at the wrong point",
                       f"the derivative of {self.said(head)} is taken at {text}, its value,"
                       f" instead of {self.text(operands[0])}",
                       elsewhere={head: ((out,), again)})  # fmt: skip
            if RESULT in unparse(parse_partial(find_primitive(name).partials[0])):
                yield Slip("inner function not evaluated",
                           f"{self.text(operands[0])} stands in the derivative of"
                           f" {self.said(head)} in the place of {text}",
                           elsewhere={head: ((values[0],), values[0])})  # fmt: skip
        for name, heads in kinds.items():
            if len(heads) > 1:
                yield Slip("derivative at the wrong point",
                           f"the derivative of each {name} is taken at its value",
                           elsewhere=heads)  # fmt: skip

    def _branches(self) -> Iterator[Slip]:
        """Of a vertex that is used several times, one use kept or left out."""
        for tail, uses in self.merging().items():
            if tail in self.sources.values():
                continue
            lines: dict[int, set[Place]] = {}
            for head, which in uses:
                lines.setdefault(self.owner[head], set()).add((head, which))
            if len(lines) < 2:
                continue
            for line, own in lines.items():
                others = {*uses} - own
                way = f"from {self.text(tail)} through {self.text(line)}"
                yield Slip("one path of several", f"the paths {way} are left out",
                           lost=frozenset(own))  # fmt: skip
                if len(lines) > 2:
                    yield Slip("one path of several", f"only the paths {way} are kept",
                               lost=frozenset(others))  # fmt: skip

    def _signs(self) -> Iterator[Slip]:
        """The wrong sign of a single share."""
        for head, which, tail in self.shares:
            yield Slip("sign", f"of the derivative of {self.said(head)} by {self.text(tail)}",
                       negative=frozenset({(head, which)}))  # fmt: skip

    def _stopped(self) -> Iterator[Slip]:
        """The derivative of an inner variable in the place of that of the output."""
        for vertex in self.vertices():
            if vertex != self.root:
                name = self.tape.labels[vertex]
                yield Slip("outer derivative missing",
                           f"this is the derivative of {name}: the factors behind it are left out",
                           roots=(vertex,))  # fmt: skip

    # --- paths -------------------------------------------------------------------------------

    def _paths(self, whole: Mapping[str, int]) -> None:
        """One path kept or left out, between variables and inside of their expressions."""
        for inside in (False, True):
            heads: dict[int, list[int]] = {}
            shares = [(h if inside else self.owner[h], (h, w), t) for h, w, t in self.shares
                      if inside or t in self.tape.labels]  # fmt: skip
            for head, _, tail in shares:
                if head not in heads.setdefault(tail, []):
                    heads[tail].append(head)
            leading = count_paths(heads, self.root)
            for element, source in self.sources.items():
                many = leading.get(source, 0)
                if not 1 < many <= _MOST_PATHS or self.work > 2 * _MOST_WORK:
                    continue
                for path in list_paths(heads, source, self.root, leading):
                    before = {head: tail for tail, head in pairwise(path)}
                    lost = frozenset(place for h, place, t in shares if before.get(h) != t)
                    kept = self.sweep(Slip("", "", lost=lost))[element]
                    others = self.builder.emit("sub", whole[element], kept)
                    way = " -> ".join(map(self.text, path))
                    count = f"of the {many} paths from {element},"
                    self.note("one path of several", f"{count} only {way} is kept",
                               {element: kept})  # fmt: skip
                    self.note("one path of several", f"{count} {way} is left out",
                               {element: others})  # fmt: skip
