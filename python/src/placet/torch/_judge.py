"""Compares what the ranks hold after each update with what the reference holds.

Entries are known by their numbers before the first update, not by name or shape, so that flat
buffers, shards and pads of any engine need no description: an entry of a rank is the entry of the
reference that began with the same number.
"""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from . import _field
from ._session import Options

P = _field.P
CONDITIONS = (
    "gradient_integrity",
    "state_consistency",
    "update_integrity",
    "input_integrity",
    "order",
)


# Entries that may be by accident what one factor makes of the right ones.
_MANY = 8
_SMALL = 4096  # parts of a fraction: of all numbers of the field 1 in 100 is one


@dataclass
class Finding:
    condition: str
    sign: str
    tensor: str
    ranks: list[int]
    step: int
    at: str  # file and line
    found: str
    difference: str
    entries: int
    fix: str
    before: str = ""


@dataclass
class Verdict:
    equivalent: bool
    world: int
    steps: int
    entries: int
    operators: int
    unknown: dict[str, int]
    findings: list[Finding]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        broken = {one.condition for one in self.findings}
        return {
            "schema": "placet.torch.verdict/1",
            **asdict(self),
            "conditions": {one: "broken" if one in broken else "holds" for one in CONDITIONS},
        }

    def text(self) -> str:
        if self.equivalent:
            head = (
                f"EQUIVALENT: {self.steps} updates on {self.world} ranks are those of one device, "
                f"in all {self.entries:,} entries"
            )
        else:
            head = f"NOT EQUIVALENT on {self.world} ranks"
        lines = [head]
        for one in self.findings:
            lines.append(f"  {one.at or 'no line known'}: {one.found}")
            where = f"ranks {', '.join(map(str, one.ranks))}, update {one.step}"
            lines.append(f"    {one.tensor} ({where}): {one.difference}")
            if one.before:
                lines.append(f"    first seen at {one.before}")
            if one.fix:
                lines.append(f"    cure: {one.fix}")
        return "\n".join([*lines, *(f"  note: {one}" for one in self.notes)])


@functools.cache
def _causes() -> dict[str, dict[str, str]]:
    path = os.path.join(os.path.dirname(__file__), "causes.json")
    with open(path, encoding="utf-8") as file:
        return {one["sign"]: one for one in json.load(file)["causes"]}


class Entries:
    """All entries of the reference after one update, by number at the start."""

    def __init__(self, update: list[dict[str, Any]]) -> None:
        keys = torch.cat([held["key"] for held in update])
        self.names = [held["name"] for held in update]
        sizes = [held["key"].numel() for held in update]
        owner = torch.cat([torch.full((size,), at) for at, size in enumerate(sizes)])
        order = keys.argsort(stable=True)
        self.keys = keys[order]
        self.owner = owner[order]
        twice = torch.zeros_like(self.keys, dtype=torch.bool)
        twice[1:] |= self.keys[1:] == self.keys[:-1]
        twice[:-1] |= self.keys[1:] == self.keys[:-1]
        self.ambiguous = twice
        self.after = torch.cat([held["after"] for held in update])[order]
        none = [held["gradient"] is None for held in update]
        self.gradient = torch.cat(
            [
                torch.zeros_like(held["key"]) if held["gradient"] is None else held["gradient"]
                for held in update
            ]
        )[order]
        self.without = {self.names[at] for at, one in enumerate(none) if one}

    def find(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Positions, and whether the number is there."""
        at = torch.searchsorted(self.keys, keys).clamp(max=self.keys.numel() - 1)
        return at, self.keys[at] == keys


@dataclass
class Difference:
    """Entries of one tensor of one rank that differ."""

    rank: int
    name: str
    step: int
    at: Tensor  # positions in the reference
    found: Tensor
    expected: Tensor
    what: str  # "gradient", "after", "start", "none"


def _ratio(one: Difference) -> int | None:
    """The number by which found is expected, if it is one for all entries."""
    live = one.expected != 0
    if not bool(live.any()) or bool(((one.found != 0) & ~live).any()):
        return None
    ratios = one.found[live] * _field.inverse(one.expected[live]) % P
    return int(ratios[0]) if bool((ratios == ratios[0]).all()) else None


class Judge:
    def __init__(
        self,
        options: Options,
        reference: dict[str, Any],
        ranks: list[dict[str, Any]],
        stuck: list[str],
    ) -> None:
        self.options, self.reference, self.ranks, self.stuck = options, reference, ranks, stuck
        self.notes: list[str] = []
        self.compared = 0

    # --- facts --------------------------------------------------------------------------------

    def _compare(self, step: int) -> list[Difference]:
        entries = Entries(self.reference["updates"][step])
        covered = torch.zeros_like(entries.keys, dtype=torch.bool)
        out: list[Difference] = []
        for rank, seen in enumerate(self.ranks):
            update = [held for held in seen["updates"][step] if held["key"].numel()]
            if update and all(held["gradient"] is None for held in update):
                none = torch.zeros(0, dtype=torch.int64)
                out.append(Difference(rank, update[0]["name"], step, none, none, none, "none"))
            for held in update:
                out += self._compare_tensor(entries, covered, rank, step, held)
        missing = ~covered & ~entries.ambiguous
        for owner in entries.owner[missing].unique().tolist():
            at = (missing & (entries.owner == owner)).nonzero()[:, 0]
            name = entries.names[owner]
            out.append(Difference(0, name, step, at, at, at, "not held"))
        self.entries = entries
        return out

    def _compare_tensor(
        self, entries: Entries, covered: Tensor, rank: int, step: int, held: dict[str, Any]
    ) -> list[Difference]:
        at, there = entries.find(held["key"])
        strange = ~there & (held["key"] != 0)
        name = held["name"]
        if bool(there.any()):
            name = entries.names[int(entries.owner[at[there]].mode().values)]
        if int(strange.sum()) * 2 > held["key"].numel():
            empty = at[:0]
            return [Difference(rank, name, step, empty, held["key"], empty, "start")]
        judged = there & ~entries.ambiguous[at]
        covered[at[judged]] = True
        self.compared += int(judged.sum())
        at = at[judged]
        out: list[Difference] = []
        if held["gradient"] is None:
            if at.numel() and name not in entries.without:
                out.append(Difference(rank, name, step, at, at, at, "none"))
            return out
        for what, expected in (("gradient", entries.gradient), ("after", entries.after)):
            found = held[what]
            if found.numel() != held["key"].numel():
                continue
            found = found[judged]
            wrong = found != expected[at]
            if bool(wrong.any()):
                out.append(Difference(rank, name, step, at, found, expected[at], what))
        # A gradient that the update itself completes is no difference.
        return out if any(one.what == "after" for one in out) else []

    # --- what they mean -----------------------------------------------------------------------

    def _line(self, kind: str, ranks: list[int], step: int) -> str:
        seen = self.ranks[ranks[0] if ranks else 0]
        if kind == "optimizer":
            return next(iter(seen["optimizers"].values()), "")
        if kind == "step":
            places = seen["step_places"] or max(
                (one.get("step_places", []) for one in self.ranks), key=len
            )
            return places[min(step, len(places) - 1)] if places else ""
        if kind == "backward":
            return self._backward(seen, 0)
        if kind in seen["said"] and seen["said"][kind]:
            return seen["said"][kind][0]
        if kind == "reduction":
            first = self._first_foreign(seen, step, norms=False)
            again = (m for m in seen["messages"] if m.get("repeats") and m["update"] <= step)
            repeated = next((str(m["place"]) for m in again), "")
            return first or repeated or self._backward(seen, -1)
        if kind == "message":
            return self._first_foreign(seen, step) or self._line("backward", ranks, step)
        if kind == "clip" and self._first_foreign(seen, step):
            return self._first_foreign(seen, step)
        return self._line("optimizer" if kind == "seed" else "step", ranks, step)

    def _backward(self, seen: dict[str, Any], at: int) -> str:
        """The line of a backward pass from a loss, of another rank where this one has none."""
        calls = seen["backwards"] or max((one.get("backwards", []) for one in self.ranks), key=len)
        return str(calls[at][0]) if calls else ""

    def _is_known(self, numbers: Tensor) -> bool:
        """Whether the reference has most of the numbers, or a small part of them: what is added
        up over ranks first and divided then."""
        known = self.reference["values"]
        for parts in range(1, max(self.options.world, 8) + 1):
            scaled = numbers * pow(parts, P - 2, P) % P
            at = torch.searchsorted(known, scaled).clamp(max=known.numel() - 1)
            if float((known[at] == scaled).float().mean()) >= 0.5:
                return True
        return False

    def _first_foreign(self, seen: dict[str, Any], step: int, norms: bool = True) -> str:
        """The first message, or norm, up to this update whose result the reference never has. Of
        maxima some are strange by right (those of a softmax in parts): one is named only where a
        norm would be else."""
        if not self.reference["values"].numel():
            return ""
        maximum = ""
        for message in seen["messages"]:
            of_norm = message["kind"] == "norm" or message["place"] in seen["said"]["clip"]
            if message["update"] > step or (of_norm and not norms):
                continue
            if message["numbers"].numel() == 0 or self._is_known(message["numbers"]):
                continue
            if message["reduction"] not in ("max", "min"):
                return maximum if of_norm and maximum else str(message["place"])
            maximum = maximum or str(message["place"])
        return ""

    def _finding(self, sign: str, group: list[Difference], difference: str) -> Finding:
        cause = _causes()[sign]
        ranks = sorted({one.rank for one in group})
        step = min(one.step for one in group)
        names = list(dict.fromkeys(one.name for one in group))
        tensor = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        seen = self.ranks[ranks[0]]
        at = self._line(cause["line"], ranks, step)
        foreign = self._first_foreign(seen, step)
        return Finding(
            cause["condition"],
            sign,
            tensor,
            ranks,
            step + 1,
            at,
            cause["text"],
            difference,
            sum(int(one.at.numel()) for one in group),
            cause["cure"],
            foreign if foreign != at else "",
        )

    def _meaning(self, differences: list[Difference]) -> list[Finding]:
        out = []
        for what, sign in (
            ("none", "no gradient"),
            ("start", "foreign start"),
            ("not held", "not held"),
        ):
            group = [one for one in differences if one.what == what]
            if group:
                out.append(self._finding(sign, group, _WORDS[what]))
        if out:
            return out
        gradients = [one for one in differences if one.what == "gradient"]
        if not gradients:
            after = [one for one in differences if one.what == "after"]
            return [self._finding("update only", after, "the update itself differs")]
        return self._of_gradients(gradients)

    def _of_gradients(self, gradients: list[Difference]) -> list[Finding]:
        out = []
        left = list(gradients)
        ratios = {id(one): _ratio(one) for one in left}
        factors: list[Difference] = []
        for ratio, _ in Counter(r for r in ratios.values() if r is not None).most_common():
            group = [one for one in left if ratios[id(one)] == ratio]
            fraction = _field.fraction_of(ratio, _SMALL)
            if fraction is not None:
                out.append(self._finding("scale", group, self._scale(fraction)))
                left = [one for one in left if ratios[id(one)] != ratio]
            elif sum(int(one.at.numel()) for one in group) >= _MANY:
                factors += group
        if factors:
            of_norm = self._norm_ratio(factors[0].rank)
            if of_norm is None:
                text = "all its entries are multiplied by one number"
                out.append(self._finding("common factor", factors, text))
            else:
                text = f"its norm before clipping is {of_norm} times what it should be"
                out.append(self._finding("scale", factors, text))
            taken = {id(one) for one in factors}
            left = [one for one in left if id(one) not in taken]
        if left:
            out.append(self._of_parts(left))
        # One wrong gradient changes the norm that all others are clipped by: those come behind it.
        return sorted(out, key=lambda one: (one.sign == "common factor", -one.entries))

    def _norm_ratio(self, rank: int) -> Fraction | None:
        """The fraction by which a rank's first norm is too large, if it is one and not 1."""
        first = [
            next((m["square"] for m in seen["messages"] if m["kind"] == "norm"), 0)
            for seen in (self.ranks[rank], self.reference)
        ]
        if not all(first):
            return None
        square = _field.fraction_of(first[0] * pow(first[1], P - 2, P) % P)
        if square is None or square <= 0 or square == 1:
            return None
        roots = [round(part**0.5) for part in (square.numerator, square.denominator)]
        exact = roots[0] ** 2 == square.numerator and roots[1] ** 2 == square.denominator
        return Fraction(*roots) if exact else None

    def _scale(self, by: Fraction) -> str:
        if by == 0:
            return "it is zero"
        return f"{by} times what it should be"

    def _of_parts(self, left: list[Difference]) -> Finding:
        """Several ranks hold the same entries: do they agree, and what do theirs add up to?"""
        by_name: dict[str, list[Difference]] = {}
        for one in left:
            by_name.setdefault(one.name, []).append(one)
        name, group = max(by_name.items(), key=lambda item: len(item[1]))
        del name
        same = [
            one
            for one in group
            if one.at.numel() == group[0].at.numel() and bool((one.at == group[0].at).all())
        ]
        everyone = [one for one in left]
        if len(same) > 1:
            total = torch.stack([one.found for one in same]).sum(0) % P
            whole = Difference(0, "", 0, same[0].at, total, same[0].expected, "")
            ratio = _ratio(whole)
            fraction = None if ratio is None else _field.fraction_of(ratio, _SMALL)
            agree = all(bool((one.found == same[0].found).all()) for one in same)
            if fraction is not None and not agree:
                text = f"the ranks' numbers add up to {fraction} times the reference's"
                return self._finding("ranks differ, sums to the reference", everyone, text)
            if not agree:
                return self._finding("ranks differ", everyone, "the ranks' numbers differ")
        if self._same_samples():
            text = "the loss of the first micro-batch is the same number on ranks "
            return self._finding("same samples", everyone, text + self._same_samples())
        return self._finding("other", everyone, "it is no multiple of the reference's")

    def _same_samples(self) -> str:
        """Ranks whose first loss is the same, where each should have samples of its own."""
        ways = self.options.data_parallel or self.options.world
        first = [seen["backwards"][0][1] for seen in self.ranks if seen["backwards"]]
        if len(first) < self.options.world or ways == 1:
            return ""
        if len(set(first)) * (self.options.world // ways) < len(first):
            return ", ".join(str(r) for r, one in enumerate(first) if first.count(one) > 1)
        return ""

    # --- the verdict --------------------------------------------------------------------------

    def _stopped(self) -> list[Finding]:
        out = []
        for rank, seen in enumerate(self.ranks):
            if not seen.get("error"):
                continue
            cause = _causes()["stopped"]
            last = seen["error"].strip().splitlines()[-1]
            out.append(
                Finding(
                    cause["condition"],
                    "stopped",
                    f"rank {rank}",
                    [rank],
                    0,
                    _user_line(seen["error"], self.options.script),
                    cause["text"],
                    last,
                    0,
                    cause["cure"],
                )
            )
        return out

    def _fewer(self, most: int) -> list[Finding]:
        """Ranks that make fewer updates than others, or all fewer than the reference."""
        most = max(most, min(len(self.reference["updates"]), self.options.steps))
        none = torch.zeros(0, dtype=torch.int64)
        group = [
            Difference(rank, "all its parameters", 0, none, none, none, "fewer")
            for rank, seen in enumerate(self.ranks)
            if len(seen.get("updates", [])) < most
        ]
        return [self._finding("fewer updates", group, "it makes fewer updates")] if group else []

    def verdict(self) -> Verdict:
        most = max(len(seen.get("updates", [])) for seen in self.ranks)
        steps = min(
            [len(self.reference.get("updates", []))]
            + [len(seen.get("updates", [])) for seen in self.ranks]
        )
        ended = [one for one in self.ranks if len(one.get("updates", [])) >= self.options.steps]
        findings: list[Finding] = (self._fewer(most) if ended else []) or self._stopped()
        findings = findings or self._fewer(most)
        for step in range(steps if not findings else 0):
            differences = self._compare(step)
            if differences:
                findings = self._meaning(differences)
                break
        unknown: Counter[str] = Counter()
        operators = 0
        for seen in self.ranks:
            unknown.update(seen.get("unknown", {}))
            operators += seen.get("operators", 0)
        if unknown:
            names = ", ".join(sorted(unknown))
            self.notes.append(
                f"of these operators only this is used, that equal inputs give "
                f"equal outputs: {names}"
            )
        return Verdict(
            not findings and steps > 0,
            self.options.world,
            steps,
            self.compared,
            operators,
            dict(unknown),
            findings,
            self.notes,
        )


_WORDS = {
    "none": "it has no gradient at the update",
    "start": "its entries are of no parameter of the reference",
    "not held": "no rank updates these entries",
}


def _user_line(error: str, script: str) -> str:
    """The innermost line of the script in a traceback."""
    name = os.path.basename(script)
    at = ""
    for line in error.splitlines():
        if line.strip().startswith("File ") and name in line:
            parts = line.strip().split(", ")
            at = f"{os.path.relpath(parts[0][6:-1])}:{parts[1].split()[1]}"
    return at
