"""What runs leave behind, read as messages of one step and bytes of memory. Needs no PyTorch.

A run is {"source", "messages", "rest_bytes", "peak_bytes"}: messages with collective, group (0: the
source does not tell), dtype, count, payload_bytes, phase and place ("": it does not tell).
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._errors import InputError

KINDS = (
    "a record, a Chrome trace, an execution trace, a Flight Recorder dump, a memory snapshot, "
    "or a log of NCCL, Megatron or torchtitan"
)
_COLLECTIVES = {
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "all_gather": "all_gather",
    "_all_gather_base": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
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
    "c10::bfloat16": ("bf16", 2),
    "half": ("fp16", 2),
    "c10::half": ("fp16", 2),
    "float16": ("fp16", 2),
    "double": ("fp64", 8),
    "float64": ("fp64", 8),
    "long": ("int64", 8),
    "long int": ("int64", 8),
    "int64": ("int64", 8),
    "int": ("int32", 4),
    "int32": ("int32", 4),
    "byte": ("uint8", 1),
    "unsigned char": ("uint8", 1),
    "uint8": ("uint8", 1),
    "bool": ("bool", 1),
    "char": ("int8", 1),
    "signed char": ("int8", 1),
    "int8": ("int8", 1),
    "short": ("int16", 2),
    "short int": ("int16", 2),
    "int16": ("int16", 2),
    "uint16": ("uint16", 2),
    "unsigned short": ("uint16", 2),
    "uint32": ("uint32", 4),
    "unsigned int": ("uint32", 4),
    "uint64": ("uint64", 8),
    "unsigned long": ("uint64", 8),
    "float8_e4m3fn": ("fp8", 1),
    "float8_e5m2": ("fp8", 1),
    "c10::float8_e4m3fn": ("fp8", 1),
    "c10::float8_e5m2": ("fp8", 1),
    "complexhalf": ("complex32", 4),
    "complexfloat": ("complex64", 8),
    "c10::complex<float>": ("complex64", 8),
    "complex64": ("complex64", 8),
    "complexdouble": ("complex128", 16),
    "c10::complex<double>": ("complex128", 16),
    "complex128": ("complex128", 16),
}
# Of an operator of c10d, the argument whose bytes are the payload: of a gather its output.
_OPERATORS = {
    "allreduce_": ("all_reduce", 0),
    "allreduce_coalesced_": ("all_reduce", 0),
    "_allgather_base_": ("all_gather", 0),
    "allgather_": ("all_gather", 0),
    "allgather_into_tensor_coalesced_": ("all_gather", 0),
    "_reduce_scatter_base_": ("reduce_scatter", 1),
    "reduce_scatter_": ("reduce_scatter", 1),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", 1),
    "broadcast_": ("broadcast", 0),
    "alltoall_base_": ("all_to_all", 1),
    "send": ("send_recv", 0),
}
_MOST_BYTES = 4 << 30
_MOST_EXTENTS = 100_000  # of the shapes of one message
_INCOMPLETE = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
)


def wrong(where: str, value: object, problem: str, allowed: str) -> InputError:
    return InputError(
        {
            "message": f"{where}: {problem}; expected {allowed}",
            "where": where,
            "value": str(value),
            "problem": problem,
            "allowed": allowed,
            "nearest": "",
        }
    )


def _typed(name: object) -> tuple[str, int]:
    """The name and the bytes of a number. Throws InputError for a type that is not known."""
    word = str(name).split(".")[-1].lower()
    if word not in _DTYPES:
        raise wrong("dtype", name, f"'{name}' is of no size that is known", ", ".join(_DTYPES))
    return _DTYPES[word]


def _message(kind: str, group: int, dtype: object, count: int, place: str = "") -> dict[str, Any]:
    name, size = _typed(dtype)
    return {
        "collective": kind,
        "group": group,
        "dtype": name,
        "count": count,
        "payload_bytes": count * size,
        "phase": "",
        "place": place,
    }


def _elements(shapes: Any) -> int:
    """Numbers of a tensor's shape, or of all tensors of a list, however deep. A dump may hold one
    list many times: what is walked through is bounded."""
    left = _MOST_EXTENTS

    def numbers(inner: Any) -> int:
        nonlocal left
        left -= 1 + len(inner)
        if left < 0:
            raise wrong("shapes", "", "are too many", f"at most {_MOST_EXTENTS} numbers")
        if all(isinstance(one, (int, float)) for one in inner):
            out = 1
            for extent in inner:
                out *= int(extent)
            return out
        return sum(numbers(one) for one in inner)

    return numbers(shapes)


def last_step(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of a run without marks, the messages of its last step: the shortest piece that, repeated,
    makes up the longest end of the run. All of them where nothing repeats.

    Case: of s a b b a b b the piece a b b, which covers six; b alone covers two.
    """
    keys = ("collective", "group", "dtype", "payload_bytes")
    line = [tuple(one[key] for key in keys) for one in reversed(messages)]
    best, covered = len(line), 0
    # Of each shift, how far the line agrees with itself (the Z function).
    reach = [0] * len(line)
    left = right = 0
    for at in range(1, len(line)):
        if at < right:
            reach[at] = min(right - at, reach[at - left])
        while at + reach[at] < len(line) and line[reach[at]] == line[at + reach[at]]:
            reach[at] += 1
        if at + reach[at] > right:
            left, right = at, at + reach[at]
        whole = (reach[at] // at + 1) * at
        if reach[at] >= at and whole > covered:
            best, covered = at, whole
    return list(messages[len(messages) - best :])


# --- traces -------------------------------------------------------------------------------------


def _of_comms(said: Mapping[str, Any]) -> dict[str, Any] | None:
    """Of what PyTorch notes beside a collective of a device (record_param_comms)."""
    kind = _COLLECTIVES.get(str(said.get("Collective name", "")).removesuffix("_"))
    if kind is None:
        return None
    whole = "Out msg nelems" if kind == "all_gather" else "In msg nelems"
    return _message(
        kind, int(said.get("Group size", 0)), said.get("dtype"), int(said.get(whole, 0))
    )


def _of_operator(name: str, shapes: Any, types: Any) -> dict[str, Any] | None:
    """Of an operator of torch.distributed, which does not say its group."""
    kind, at = _OPERATORS.get(name, ("", 0))
    if not kind:
        return None
    dtype = re.sub(r"GenericList\[|Tensor\(|[\])]|,.*", "", str(types[at]))
    return _message(kind, 0, dtype, _elements(shapes[at]))


def _from_chrome(document: Mapping[str, Any], step: int | None) -> list[dict[str, Any]]:
    """Messages of a trace of torch.profiler: record_param_comms, or where the backend has none (of
    gloo) operators of c10d."""
    events = [e for e in document["traceEvents"] if e.get("ph") == "X"]
    marks = sorted(
        (e["ts"], e["ts"] + e.get("dur", 0))
        for e in events
        if str(e.get("name", "")).startswith("ProfilerStep#")
    )
    begin, end = (float("-inf"), float("inf"))
    if marks:
        begin, end = marks[_chosen(step, len(marks))]
    events = sorted((e for e in events if begin <= e["ts"] < end), key=lambda e: float(e["ts"]))
    comms = [e.get("args", {}) for e in events if e.get("name") == "record_param_comms"]
    if comms:
        out = [_of_comms(one) for one in comms]
    else:
        out = _chrome_operators(events)
    found = [one for one in out if one is not None]
    return found if marks else last_step(found)


def _chrome_operators(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
    """The profiler does not say of what a list of tensors is; the backend's own event does."""
    events = list(events)
    types: dict[str, list[Any]] = {}
    for event in events:
        backend, _, kind = str(event.get("name", "")).partition(":")
        if kind and backend in ("gloo", "nccl", "mpi", "ucc"):
            types.setdefault(kind.lstrip("_"), []).append(event["args"].get("Input type", [""])[0])
    out: list[dict[str, Any] | None] = []
    for event in events:
        space, _, name = str(event.get("name", "")).partition("::")
        if space != "c10d" or name not in _OPERATORS:
            continue
        said = dict(event["args"])
        kinds = list(said["Input type"])
        of_backend = types.get(_OPERATORS[name][0], [])
        first = of_backend.pop(0) if of_backend else ""
        at = _OPERATORS[name][1]
        if kinds[at] == "TensorList":
            kinds[at] = first
        out.append(_of_operator(name, said["Input Dims"], kinds))
    return out


def _from_execution_trace(document: Mapping[str, Any], step: int | None) -> list[dict[str, Any]]:
    """Messages of an execution trace (ExecutionTraceObserver; schemas 1.0 and 1.1)."""
    names = {
        "collective_name": "Collective name",
        "dtype": "dtype",
        "in_msg_nelems": "In msg nelems",
        "out_msg_nelems": "Out msg nelems",
        "pg_size": "Group size",
    }
    comms, operators = [], []
    for node in document["nodes"]:
        space, _, name = node["name"].partition("::")
        if node["name"] == "record_param_comms":
            said = {one["name"]: one["value"] for one in node.get("attrs", [])}
            comms.append(_of_comms({names[k]: v for k, v in said.items() if k in names}))
        elif space == "c10d" and name in _OPERATORS:
            inputs = node["inputs"]
            operators.append(_of_operator(name, inputs["shapes"], inputs["types"]))
    found = [one for one in comms or operators if one is not None]
    return last_step(found)


def _from_flight(document: Mapping[str, Any], step: int | None) -> list[dict[str, Any]]:
    """Messages of a dump of PyTorch's Flight Recorder."""
    groups = document.get("pg_config", {})
    out = []
    for entry in document["entries"]:
        name = str(entry.get("profiling_name", "")).split(":")[-1]
        kind = _COLLECTIVES.get(name.removesuffix("_"))
        if kind is None:
            continue
        whole = "output" if kind == "all_gather" else "input"
        dtypes = entry.get(f"{whole}_dtypes", []) or ["Float"]
        said = groups.get(str((entry.get("process_group") or ["0"])[0]), {})
        if not said and len(groups) == 1:
            said = next(iter(groups.values()))
        ranks = said.get("ranks", [])
        ranks = json.loads(ranks) if isinstance(ranks, str) else ranks
        count = _elements(entry.get(f"{whole}_sizes", []))
        out.append(_message(kind, len(ranks), dtypes[0], count, _user_frame(entry)))
    return last_step(out)


def _user_frame(entry: Mapping[str, Any]) -> str:
    """The innermost line that is of no installed package."""
    for frame in entry.get("frames", []):
        name = str(frame.get("filename", ""))
        if name and "site-packages" not in name and not name.startswith("<"):
            return f"{os.path.basename(name)}:{frame.get('line', 0)}"
    return ""


# --- logs ---------------------------------------------------------------------------------------

# "node:812:901 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f.. recvbuff 0x7f.. count 64
# datatype 7 op 0 root 0 comm 0x55.. [nranks=8] stream 0x55..", with NCCL_DEBUG=INFO
# NCCL_DEBUG_SUBSYS=COLL (NVIDIA/nccl src/enqueue.cc, ncclEnqueueCheck).
_NCCL = re.compile(
    r"(?P<process>\S+:\d+):\d+ \[\d+\] NCCL INFO (?P<name>\w+): opCount [0-9a-f]+ .*?"
    r"count (?P<count>\d+) datatype (?P<dtype>\d+) .*?comm (?P<comm>\w+)"
    r"(?: \[nranks=(?P<ranks>\d+)\])?"
)
_NCCL_RANKS = re.compile(r"comm (?P<comm>0x\w+) rank \d+ n[rR]anks (?P<ranks>\d+)")
_NCCL_KINDS = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "AlltoAll": "all_to_all",
    "Send": "send_recv",
}
# ncclDataType_t (NVIDIA/nccl src/nccl.h.in)
_NCCL_DTYPES = {
    0: "int8",
    1: "uint8",
    2: "int32",
    3: "uint32",
    4: "int64",
    5: "uint64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "bfloat16",
    10: "float8_e4m3fn",
    11: "float8_e5m2",
}


def _from_nccl(text: str, rank: int) -> list[dict[str, Any]]:
    """Messages of one process of NCCL's log; processes count in the order in which they appear.
    Counts are those of one rank's part where a collective divides (gathers and scatters)."""
    sizes = {one["comm"]: int(one["ranks"]) for one in _NCCL_RANKS.finditer(text)}
    by_process: dict[str, list[dict[str, Any]]] = {}
    for one in _NCCL.finditer(text):
        kind = _NCCL_KINDS.get(one["name"])
        if kind is None:
            continue
        group = int(one["ranks"] or sizes.get(one["comm"], 0))
        whole = group if kind in ("all_gather", "reduce_scatter", "all_to_all") else 1
        dtype = _NCCL_DTYPES.get(int(one["dtype"]), one["dtype"])
        size = 2 if kind == "send_recv" else group
        made = _message(kind, size, dtype, int(one["count"]) * whole)
        by_process.setdefault(one["process"], []).append(made)
    if not by_process:
        raise wrong(
            "log of NCCL",
            "",
            "has no collective",
            "one written with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL",
        )
    if not 0 <= rank < len(by_process):
        problem = f"process {rank} is not in the log"
        raise wrong("--rank", rank, problem, f"from 0 to {len(by_process) - 1}")
    return last_step([*by_process.values()][rank])


# "[Rank 0] (after 2 iterations) memory (MB) | allocated: 1.0 | max allocated: 2.0 | ..." in MiB
# (NVIDIA/Megatron-LM megatron/training/utils.py report_memory).
_MEGATRON = re.compile(
    r"\[Rank (?P<rank>\d+)\].*?memory \(MB\) \| allocated: (?P<rest>[\d.]+) \| "
    r"max allocated: (?P<peak>[\d.]+)"
)
# "step: 10  loss: 7.1  grad_norm: 1.0  memory: 41.13GiB(43.28%)  tps: ..." of most reserved bytes
# (pytorch/torchtitan torchtitan/components/metrics.py log).
_TORCHTITAN = re.compile(r"step:\s*\d+\s.*?memory:\s*(?P<peak>[\d.]+)GiB")


def _from_log(name: str, text: str, rank: int) -> dict[str, Any] | None:
    run = {"messages": [], "rest_bytes": {}, "peak_bytes": 0}
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    if "NCCL INFO" in text:
        return {**run, "source": "log of NCCL", "messages": _from_nccl(text, rank)}
    lines = [one for one in _MEGATRON.finditer(text) if int(one["rank"]) == rank]
    if lines:
        peak = max(float(one["peak"]) for one in lines)
        return {**run, "source": "log of Megatron", "peak_bytes": int(peak * 2**20)}
    steps = [float(one["peak"]) for one in _TORCHTITAN.finditer(text)]
    if steps:
        return {**run, "source": "log of torchtitan", "peak_bytes": int(max(steps) * 2**30)}
    return None


# --- memory -------------------------------------------------------------------------------------


def _from_snapshot(document: Mapping[str, Any]) -> int:
    """The most bytes of a snapshot of PyTorch's allocator (torch.cuda.memory._snapshot) that were
    allocated at once while its history was kept."""
    most = 0
    for device, events in enumerate(document["device_traces"]):
        now = sum(
            int(segment["allocated_size"])
            for segment in document["segments"]
            if int(segment.get("device", 0)) == device
        )
        peak = now
        for event in reversed(events):  # from the end, of which all is known
            if event["action"] == "alloc":
                now -= int(event["size"])
            elif event["action"] == "free_completed":
                now += int(event["size"])
            peak = max(peak, now)
        most = max(most, peak)
    return most


class _Plain(pickle.Unpickler):
    """Reads dumps that hold nothing but plain values."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it holds {module}.{name}")


# --- any of them --------------------------------------------------------------------------------


def _chosen(step: int | None, steps: int) -> int:
    at = steps - 1 if step is None else step
    if not 0 <= at < steps:
        raise wrong("--step", step, f"{at} is not there", f"from 0 to {steps - 1}")
    return at


def _opened(name: str) -> bytes:
    try:
        with gzip.open(name) if name.endswith(".gz") else open(name, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as fault:
        raise wrong(name, name, f"cannot be read ({fault.strerror or fault})", "a file") from None
    except (EOFError, zlib.error) as fault:
        raise wrong(name, name, f"cannot be unpacked ({fault})", "a whole gzip file") from None
    if len(data) > _MOST_BYTES:
        raise wrong(name, name, "is too long", "at most 4 GiB")
    return data


def _parsed(name: str, data: bytes) -> Any:
    """JSON, plain values of pickle, or text."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        pass
    try:
        return _Plain(io.BytesIO(data)).load()
    except Exception as fault:
        text = data.decode("utf-8", "replace")
        if "NCCL INFO" in text or "memory" in text:
            return text
        raise wrong(
            name, name, f"is neither JSON, a dump of plain values nor a log ({fault})", KINDS
        ) from None


def read(path: str | os.PathLike[str], step: int | None = None, *, rank: int = 0) -> dict[str, Any]:
    """The messages of one step, and bytes of memory where the source has them. `step` counts from 0
    where the source marks steps (a record, a Chrome trace with ProfilerStep); else, and without
    it, it is the last one. `rank` chooses a process of a log. Throws InputError."""
    name = os.fspath(path)
    document = _parsed(name, _opened(name))
    try:
        run = _taken(document, step, rank)
    except InputError:
        raise
    except _INCOMPLETE as fault:
        problem = f"is not complete ({type(fault).__name__}: {fault})"
        raise wrong(name, name, problem, KINDS) from None
    if run is None:
        raise wrong(name, name, "is of no kind that is known", KINDS)
    return run


def steps_in_record(path: str | os.PathLike[str]) -> int:
    """Steps of a record of placet.torch.Recorder, packed or not. Throws InputError."""
    name = os.fspath(path)
    document = _parsed(name, _opened(name))
    return len(document["steps"])


def _taken(document: Any, step: int | None, rank: int) -> dict[str, Any] | None:
    if isinstance(document, str):
        return _from_log("", document, rank)
    if not isinstance(document, dict):
        return None
    run: dict[str, Any] = {"messages": [], "rest_bytes": {}, "peak_bytes": 0}
    if document.get("schema") == "placet.torch.record/1":
        steps = document["steps"]
        if not steps:
            raise wrong("record", "", "has no step", "a record of at least one update")
        one = steps[_chosen(step, len(steps))]
        return {**run, "source": "record", **{k: one[k] for k in ("messages", "rest_bytes")}}
    if "device_traces" in document and "segments" in document:
        return {**run, "source": "memory snapshot", "peak_bytes": _from_snapshot(document)}
    for key, source, take in (
        ("traceEvents", "Chrome trace", _from_chrome),
        ("nodes", "execution trace", _from_execution_trace),
        ("entries", "Flight Recorder", _from_flight),
    ):
        if key in document:
            return {**run, "source": source, "messages": take(document, step)}
    return None
