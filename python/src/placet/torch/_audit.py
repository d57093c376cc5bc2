"""What a run sent and held, beside what is derived: term by term. Needs no PyTorch."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ._sources import read as read

Term = tuple[str, int, str, int, str]  # collective, group, dtype, payload bytes, phase
PEAK_WITHIN = 0.03  # of the derived peak


@dataclass
class Audit:
    """Terms that agree, and those that do not: what, calls derived, calls of the run, bytes."""

    agreed: int
    calls: int
    differences: list[dict[str, Any]] = field(default_factory=list)
    rest: list[dict[str, Any]] = field(default_factory=list)
    peak: dict[str, Any] | None = None

    @property
    def agrees(self) -> bool:
        rests = all(one["derived"] == one["run"] for one in self.rest)
        return not self.differences and rests and (self.peak is None or self.peak["agrees"])

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "placet.audit/1",
            "agrees": self.agrees,
            "terms_agreed": self.agreed,
            "calls": self.calls,
            "differences": self.differences,
            "rest_bytes": self.rest,
            "peak_bytes": self.peak,
        }

    def text(self) -> str:
        lines = ["AGREES" if self.agrees else "DIFFERS"]
        if self.agreed or self.differences:
            lines[0] += (
                f": {self.agreed} kinds of messages as derived, {len(self.differences)} not; "
                f"{self.calls} calls in the step"
            )
        for one in self.differences:
            groups = f" in groups of {one['group']}" if one["group"] else ""
            phase = f"{one['phase']} " if one["phase"] else ""
            lines.append(
                f"  {phase}{one['collective']} {one['dtype']} {one['payload_bytes']:,} bytes"
                f"{groups}: derived {one['derived']} times, run {one['run']}; {one['cause']}"
                + (f" ({one['place']})" if one["place"] else "")
            )
        for one in self.rest:
            mark = "" if one["derived"] == one["run"] else "  <- differs"
            lines.append(
                f"  at rest, {one['state']}: derived {one['derived']:,} bytes, run "
                f"{one['run']:,}{mark}"
            )
        if self.peak is not None:
            mark = "" if self.peak["agrees"] else f"  <- differs; {self.peak['cause']}"
            lines.append(
                f"  peak: derived {self.peak['derived']:,} bytes, run {self.peak['run']:,}{mark}"
            )
        return "\n".join(lines)


def _cause(term: Term, more: bool, other: Counter[Term]) -> str:
    """What a term without a counterpart most likely is."""
    kind, group, dtype, size, phase = term
    for (kind2, group2, dtype2, size2, phase2), count in other.items():
        if not count or kind2 != kind:
            continue
        if (group2, dtype2, size2) == (group, dtype, size) and phase2 != phase:
            return f"the same in {phase2} is there: another phase"
        if size2 == size and dtype2 == dtype and group2 != group:
            return f"the same in groups of {group2} is there: another group"
        if group2 == group and dtype2 != dtype and size2 in (2 * size, size // 2, size, 4 * size):
            return f"one in {dtype2} is there: another format"
    for (kind2, group2, _, size2, _), count in other.items():
        if count and kind2 != kind and size2 == size and group2 == group:
            return f"{kind2} of that size is there: another collective"
    if size <= 64:
        return "a scalar" + (" that is not derived" if more else " that the run does not send")
    return "not derived" if more else "the run does not send it"


def _phase(kind: str, phase: str) -> str:
    """Gradients are reduced in backward; a pipeline's schedule sends outside of all passes."""
    if kind == "send_recv":
        return ""
    return "backward" if phase == "reduce" else phase


def _terms(run: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Term]:
    """How messages are compared: by group and phase only where the source tells them."""
    messages = run["messages"]
    has_groups = all(one["group"] for one in messages)
    has_phases = all(one.get("phase") for one in messages)

    def term(one: Mapping[str, Any]) -> Term:
        kind = "send_recv" if one["collective"] == "send" else str(one["collective"])
        group = 2 if kind == "send_recv" else int(one["group"])
        return (
            kind,
            group if has_groups else 0,
            str(one["dtype"]),
            int(one["payload_bytes"]),
            _phase(kind, one.get("phase", "")) if has_phases else "",
        )

    return term


def _differences(derived: Counter[Term], done: Counter[Term]) -> list[dict[str, Any]]:
    missing, extra = derived - done, done - derived
    out = []
    for term in sorted({*missing, *extra}):
        more = done[term] > derived[term]
        both = derived[term] and done[term]
        cause = _cause(term, more, missing if more else extra)
        out.append(
            {
                "collective": term[0],
                "group": term[1],
                "dtype": term[2],
                "payload_bytes": term[3],
                "phase": term[4],
                "derived": derived[term],
                "run": done[term],
                "cause": "another number of calls" if both else cause,
                "place": "",
            }
        )
    return out


def compare(derivation: Mapping[str, Any], run: Mapping[str, Any], class_at: int = 0) -> Audit:
    """The terms of a derivation's device class beside the messages of one step. Of a source without
    messages the peak is compared, within PEAK_WITHIN."""
    memory = derivation["memory"]["classes"][class_at]
    audit = Audit(0, 0)
    if run["messages"] or not run.get("peak_bytes"):
        term_of = _terms(run)
        derived: Counter[Term] = Counter()
        for term in derivation["communication"]["classes"][class_at]["terms"]:
            if term["collective"] != "host_copy":
                derived[term_of(term)] += int(term["count"])
        done: Counter[Term] = Counter()
        places: dict[Term, str] = {}
        for one in run["messages"]:
            if one["group"] == 1 or one["collective"] == "receive":
                continue
            done[term_of(one)] += 1
            places.setdefault(term_of(one), one.get("place", ""))
        audit.calls = sum(done.values())
        audit.agreed = sum(derived[term] == count for term, count in done.items())
        audit.differences = _differences(derived, done)
        for one in audit.differences:
            key = tuple(one[k] for k in ("collective", "group", "dtype", "payload_bytes", "phase"))
            one["place"] = places.get(key, "")  # type: ignore[call-overload]
    for state in ("parameters", "gradients", "optimizer"):
        if state in run.get("rest_bytes", {}):
            derived_bytes = int(memory["rest_bytes"][state])
            done_bytes = int(run["rest_bytes"][state])
            audit.rest.append({"state": state, "derived": derived_bytes, "run": done_bytes})
    if run.get("peak_bytes"):
        audit.peak = _peak(memory, int(run["peak_bytes"]))
    return audit


def _in_allocator(memory: Mapping[str, Any]) -> int:
    """Bytes alive at the peak, contexts and other memory that no allocator sees left aside."""
    return int(memory["bytes"]["total"]) - int(memory["bytes"].get("overhead", 0))


def _peak(memory: Mapping[str, Any], run: int) -> dict[str, Any]:
    derived = _in_allocator(memory)
    near = abs(run - derived) <= PEAK_WITHIN * derived
    return {"derived": derived, "run": run, "agrees": near, "cause": ""}


_WHOLE_INSTEAD = ("ddp", "zero1", "zero2", "fsdp+keep", "fsdp")


def _cause_of_peak(audit: Audit, job: Mapping[str, Any], class_at: int) -> None:
    """Says which other life of the states along an axis of samples would have the run's peak."""
    import placet

    if audit.peak is None or audit.peak["agrees"]:
        return
    audit.peak["cause"] = (
        "more than derived" if audit.peak["run"] > audit.peak["derived"] else ("less than derived")
    )
    axes = str(job.get("placement", "")).split()
    best = PEAK_WITHIN
    for at, axis in enumerate(axes):
        head, _, how = axis.partition(":")
        for other in _WHOLE_INSTEAD:
            if how not in _WHOLE_INSTEAD or other == how:
                continue
            changed = " ".join([*axes[:at], f"{head}:{other}", *axes[at + 1 :]])
            try:
                other_job = {**job, "placement": changed}
                found = placet.derive(**other_job).to_dict()["memory"]["classes"][class_at]
            except placet.InputError:
                continue
            away = abs(audit.peak["run"] / max(1, _in_allocator(found)) - 1)
            if away < best:
                best = away
                audit.peak["cause"] = f"that of {changed}: states along {head} live as in {other}"


def audit(
    path: str | os.PathLike[str],
    *,
    step: int | None = None,
    rank: int = 0,
    device_class: int = 0,
    derivation: Mapping[str, Any] | None = None,
    **job: Any,
) -> Audit:
    """What a run of one rank left (see `_sources.read`) beside `placet.derive(**job)`."""
    run = read(path, step, rank=rank)
    if derivation is None:
        import placet

        derivation = placet.derive(**job).to_dict()
    found = compare(derivation, run, device_class)
    if job:
        _cause_of_peak(found, job, device_class)
    return found
