"""What a run sent and held, beside what is derived: term by term. Needs no PyTorch."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._errors import InputError

_CHROME = {
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "all_gather": "all_gather",
    "_all_gather_base": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "_allgather_base": "all_gather",
    "allgather": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "all_gather_single": "all_gather",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "reduce_scatter_single": "reduce_scatter",
    "broadcast": "broadcast",
    "all_to_all": "all_to_all",
    "all_to_allv": "all_to_all",
    "alltoall_base": "all_to_all",
    "send": "send_recv",
}
_DTYPES = {
    "float": ("fp32", 4),
    "float32": ("fp32", 4),
    "bfloat16": ("bf16", 2),
    "half": ("fp16", 2),
    "float16": ("fp16", 2),
    "double": ("fp64", 8),
    "float64": ("fp64", 8),
    "long": ("int64", 8),
    "int64": ("int64", 8),
    "int": ("int32", 4),
    "int32": ("int32", 4),
    "byte": ("uint8", 1),
    "uint8": ("uint8", 1),
    "bool": ("bool", 1),
    "float8_e4m3fn": ("fp8", 1),
}


def _wrong(path: str, problem: str, allowed: str) -> InputError:
    return InputError(
        {
            "message": f"{path}: {problem}; expected {allowed}",
            "where": path,
            "value": path,
            "problem": problem,
            "allowed": allowed,
            "nearest": "",
        }
    )


def _typed(name: object) -> tuple[str, int]:
    word = str(name).split(".")[-1].lower()
    return _DTYPES.get(word, (word, 1))


def _from_chrome(document: Mapping[str, Any], step: int | None) -> list[dict[str, Any]]:
    """Messages of a trace of torch.profiler, from its events record_param_comms."""
    events = [e for e in document["traceEvents"] if e.get("name") == "record_param_comms"]
    marks = sorted(
        (e["ts"], e["ts"] + e.get("dur", 0))
        for e in document["traceEvents"]
        if str(e.get("name", "")).startswith("ProfilerStep#") and e.get("ph") == "X"
    )
    if marks and step is not None:
        begin, end = marks[min(step, len(marks) - 1)]
        events = [e for e in events if begin <= e["ts"] < end]
    out = []
    for event in events:
        said = event.get("args", {})
        kind = _CHROME.get(str(said.get("Collective name", "")))
        if kind is None:
            continue
        dtype, size = _typed(said.get("dtype"))
        whole = "Out msg nelems" if kind == "all_gather" else "In msg nelems"
        count = int(said.get(whole, 0))
        group = int(said.get("Group size", 0))
        out.append(
            {
                "collective": kind,
                "group": group,
                "dtype": dtype,
                "count": count,
                "payload_bytes": count * size,
                "phase": "",
                "place": "",
            }
        )
    return out


class _Plain(pickle.Unpickler):
    """Reads dumps that hold nothing but plain values."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it holds {module}.{name}")


def _from_flight(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Messages of a dump of PyTorch's Flight Recorder."""
    groups = document.get("pg_config", {})
    out = []
    for entry in document["entries"]:
        name = str(entry.get("profiling_name", "")).split(":")[-1]
        kind = _CHROME.get(name.removesuffix("_"))
        if kind is None:
            continue
        whole = "output" if kind == "all_gather" else "input"
        sizes = entry.get(f"{whole}_sizes", [])
        dtypes = entry.get(f"{whole}_dtypes", []) or ["Float"]
        dtype, size = _typed(dtypes[0])
        count = 0
        for shape in sizes:
            numel = 1
            for extent in shape:
                numel *= int(extent)
            count += numel
        said = groups.get(str((entry.get("process_group") or ["0"])[0]), {})
        ranks = said.get("ranks", [])
        ranks = json.loads(ranks) if isinstance(ranks, str) else ranks
        out.append(
            {
                "collective": kind,
                "group": len(ranks),
                "dtype": dtype,
                "count": count,
                "payload_bytes": count * size,
                "phase": "",
                "place": "",
            }
        )
    return out


def read(path: str | os.PathLike[str], step: int | None = None) -> dict[str, Any]:
    """The messages of one step, and bytes at rest where the source has them."""
    name = os.fspath(path)
    try:
        with gzip.open(name) if name.endswith(".gz") else open(name, "rb") as file:
            data = file.read()
    except OSError as fault:
        raise _wrong(name, f"cannot be read ({fault.strerror or fault})", "a file") from None
    try:
        document = json.loads(data)
    except ValueError:
        try:
            document = _Plain(io.BytesIO(data)).load()
        except Exception as fault:
            raise _wrong(
                name,
                f"is neither JSON nor a dump of plain values ({fault})",
                "a record, a Chrome trace or a Flight Recorder dump",
            ) from None
    try:
        return _taken(name, document, step)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as fault:
        raise _wrong(
            name,
            f"is not complete ({type(fault).__name__}: {fault})",
            "a record, a Chrome trace or a Flight Recorder dump",
        ) from None


def _taken(name: str, document: Any, step: int | None) -> dict[str, Any]:
    if isinstance(document, dict) and document.get("schema") == "placet.torch.record/1":
        steps = document["steps"]
        if not steps:
            raise _wrong(name, "has no step", "a record of at least one update")
        at = len(steps) - 1 if step is None else step
        if not 0 <= at < len(steps):
            raise _wrong("--step", f"{at} is not there", f"from 0 to {len(steps) - 1}")
        return {
            "messages": steps[at]["messages"],
            "rest_bytes": steps[at]["rest_bytes"],
            "source": "record",
        }
    if isinstance(document, dict) and "traceEvents" in document:
        return {"messages": _from_chrome(document, step), "rest_bytes": {}, "source": "trace"}
    if isinstance(document, dict) and "entries" in document:
        return {"messages": _from_flight(document), "rest_bytes": {}, "source": "flight recorder"}
    raise _wrong(
        name, "is of no kind that is known", "a record, a Chrome trace or a Flight Recorder dump"
    )


Term = tuple[str, int, str, int]  # collective, group, dtype, payload bytes


@dataclass
class Audit:
    """Terms that agree, and those that do not: what, calls derived, calls of the run, bytes."""

    agreed: int
    calls: int
    differences: list[dict[str, Any]] = field(default_factory=list)
    rest: list[dict[str, Any]] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        return not self.differences and all(one["derived"] == one["run"] for one in self.rest)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "placet.audit/1",
            "agrees": self.agrees,
            "terms_agreed": self.agreed,
            "calls": self.calls,
            "differences": self.differences,
            "rest_bytes": self.rest,
        }

    def text(self) -> str:
        lines = [
            f"{'AGREES' if self.agrees else 'DIFFERS'}: {self.agreed} kinds of messages as "
            f"derived, {len(self.differences)} not; {self.calls} calls in the step"
        ]
        for one in self.differences:
            lines.append(
                f"  {one['collective']} {one['dtype']} {one['payload_bytes']:,} bytes in groups of "
                f"{one['group']}: derived {one['derived']} times, run {one['run']}; {one['cause']}"
                + (f" ({one['place']})" if one["place"] else "")
            )
        for one in self.rest:
            mark = "" if one["derived"] == one["run"] else "  <- differs"
            lines.append(
                f"  at rest, {one['state']}: derived {one['derived']:,} bytes, run "
                f"{one['run']:,}{mark}"
            )
        return "\n".join(lines)


def _cause(term: Term, more: bool, other: Counter[Term]) -> str:
    """What a term without a counterpart most likely is."""
    kind, group, dtype, size = term
    for (kind2, group2, dtype2, size2), count in other.items():
        if not count or kind2 != kind:
            continue
        if size2 == size and dtype2 == dtype and group2 != group:
            return f"the same in groups of {group2} is there: another group"
        if group2 == group and dtype2 == dtype and size2 == size:
            return "another number of calls"
        if group2 == group and dtype2 != dtype and size2 in (2 * size, size // 2, size, 4 * size):
            return f"one in {dtype2} is there: another format"
    for (kind2, group2, _, size2), count in other.items():
        if count and kind2 != kind and size2 == size and group2 == group:
            return f"{kind2} of that size is there: another collective"
    if size <= 64:
        return "a scalar" + (" that is not derived" if more else " that the run does not send")
    return "not derived" if more else "the run does not send it"


def compare(derivation: Mapping[str, Any], run: Mapping[str, Any], class_at: int = 0) -> Audit:
    """The terms of a derivation's device class beside the messages of one step."""
    derived: Counter[Term] = Counter()
    for term in derivation["communication"]["classes"][class_at]["terms"]:
        if term["collective"] in ("host_copy",):
            continue
        kind = term["collective"]
        count = int(term["count"])
        derived[(kind, term["group"], term["dtype"], int(term["payload_bytes"]))] += count
    done: Counter[Term] = Counter()
    places: dict[Term, str] = {}
    for one in run["messages"]:
        if one["group"] == 1 or one["collective"] == "receive":
            continue
        kind = "send_recv" if one["collective"] == "send" else one["collective"]
        term = (kind, one["group"], one["dtype"], one["payload_bytes"])
        done[term] += 1
        places.setdefault(term, one.get("place", ""))
    audit = Audit(0, sum(done.values()))
    missing, extra = derived - done, done - derived
    for term in sorted({*derived, *done}):
        if derived[term] == done[term]:
            audit.agreed += 1
            continue
        more = done[term] > derived[term]
        audit.differences.append(
            {
                "collective": term[0],
                "group": term[1],
                "dtype": term[2],
                "payload_bytes": term[3],
                "derived": derived[term],
                "run": done[term],
                "cause": "another number of calls"
                if derived[term] and done[term]
                else _cause(term, more, missing if more else extra),
                "place": places.get(term, ""),
            }
        )
    rest = derivation["memory"]["classes"][class_at]["rest_bytes"]
    for state in ("parameters", "gradients", "optimizer"):
        if state in run.get("rest_bytes", {}):
            audit.rest.append(
                {"state": state, "derived": int(rest[state]), "run": int(run["rest_bytes"][state])}
            )
    return audit


def audit(
    path: str | os.PathLike[str],
    *,
    step: int | None = None,
    device_class: int = 0,
    derivation: Mapping[str, Any] | None = None,
    **job: Any,
) -> Audit:
    """A record, Chrome trace or Flight Recorder dump of one rank beside `placet.derive(**job)`."""
    run = read(path, step)
    if derivation is None:
        import placet

        derivation = placet.derive(**job).to_dict()
    return compare(derivation, run, device_class)
