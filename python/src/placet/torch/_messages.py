"""Collectives and messages of torch.distributed, as its dispatcher shows them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes


@dataclass
class Message:
    """What one call sends: tensors in and out, the group, and how they are put together."""

    kind: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    group: Any
    reduction: str = ""
    root: int = 0
    in_splits: list[int] = field(default_factory=list)
    out_splits: list[int] = field(default_factory=list)
    peer: int = -1
    tag: int = 0
    repeats: bool = False  # a sum of numbers that are the same on all ranks already

    def ranks(self) -> list[int]:
        try:
            return list(dist.get_process_group_ranks(self.group))
        except Exception:
            return list(range(self.group.size()))

    @property
    def whole(self) -> list[Tensor]:
        """The tensors whose bytes are the payload: of a gather its output, else its input."""
        return self.outputs if self.kind in ("all_gather", "receive") else self.inputs


def _group(value: Any) -> Any:
    if isinstance(value, str):
        from torch.distributed.distributed_c10d import _resolve_process_group

        return _resolve_process_group(value)
    if isinstance(value, torch.ScriptObject):
        return dist.ProcessGroup.unbox(value)
    return value


_OPS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum")


_said: list[str] = []  # what calls of Python that are going on say of their reduction


def _word(value: Any) -> str:
    text = str(getattr(value, "op", value)).split(".")[-1].lower()
    return text if text in _OPS else "sum"


@functools.cache
def watch_reductions() -> None:
    """The dispatcher shows a reduction as an object that cannot be read; calls of Python know it.
    Calls of C++ (the buckets of DistributedDataParallel) sum."""

    def watched(call: Any) -> Any:
        @functools.wraps(call)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            said = "sum"
            for value in (*args, *kwargs.values()):
                if hasattr(value, "reduceOp"):
                    said = _word(value.reduceOp)
                elif isinstance(value, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
                    said = _word(value)
            _said.append(said)
            try:
                return call(self, *args, **kwargs)
            finally:
                _said.pop()

        return run

    for name in (
        "allreduce",
        "allreduce_coalesced",
        "reduce",
        "reduce_scatter",
        "_reduce_scatter_base",
        "reduce_scatter_single",
        "reduce_scatter_single_coalesced",
        "reduce_scatter_tensor_coalesced",
    ):
        if hasattr(dist.ProcessGroup, name):
            setattr(dist.ProcessGroup, name, watched(getattr(dist.ProcessGroup, name)))


@functools.cache
def hide_waiting() -> None:
    """What a backend does inside while somebody waits for a message is no operator of the script:
    gloo copies the result of a reduce-scatter out of memory of its own then."""
    wait = dist.Work.wait

    @functools.wraps(wait)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            return wait(self, *args, **kwargs)

    dist.Work.wait = run


def _reduction(value: Any) -> str:
    if isinstance(value, str):
        return value
    return _said[-1] if _said else "sum"


def _flat(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in _flat(one)]
    return []


_NATIVE = {
    # name: kind, argument of inputs, of outputs
    "allreduce_": ("all_reduce", "tensors", "tensors"),
    "allreduce_coalesced_": ("all_reduce", "tensors", "tensors"),
    "broadcast_": ("broadcast", "tensors", "tensors"),
    "allgather_": ("all_gather", "input_tensors", "output_tensors"),
    "_allgather_base_": ("all_gather", "input_tensor", "output_tensor"),
    "allgather_coalesced_": ("all_gather", "input_list", "output_lists"),
    "allgather_into_tensor_coalesced_": ("all_gather", "inputs", "outputs"),
    "reduce_scatter_": ("reduce_scatter", "input_tensors", "output_tensors"),
    "_reduce_scatter_base_": ("reduce_scatter", "input_tensor", "output_tensor"),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", "inputs", "outputs"),
    "reduce_": ("reduce", "tensors", "tensors"),
    "gather_": ("gather", "input_tensors", "output_tensors"),
    "scatter_": ("scatter", "input_tensors", "output_tensors"),
    "alltoall_": ("all_to_all", "input_tensors", "output_tensors"),
    "alltoall_base_": ("all_to_all", "input", "output"),
    "send": ("send", "tensors", ""),
    "recv_": ("receive", "", "tensors"),
}
_FUNCTIONAL = {
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "all_gather_into_tensor_out": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "broadcast": "broadcast",
}


def _named(op: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    names = [one.name for one in op._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def message_of(op: Any, args: Any, kwargs: Any) -> Message | None:
    """The message that an operator sends, before it ran; None: it sends none."""
    if op.namespace == "c10d":
        return _native(op, _named(op, args, kwargs))
    if op.namespace.startswith("_c10d_functional"):
        return _functional(op, _named(op, args, kwargs))
    return None


def _native(op: Any, given: dict[str, Any]) -> Message | None:
    name = op._schema.name.split("::")[1]
    if name not in _NATIVE:
        return None
    kind, inputs, outputs = _NATIVE[name]
    made = Message(
        kind,
        _flat(given.get(inputs)),
        _flat(given.get(outputs)),
        _group(given["process_group"]),
        _reduction(given["reduce_op"]) if "reduce_op" in given else "",
        int(given.get("root_rank", 0)),
    )
    if kind == "all_to_all" and name == "alltoall_base_":
        made.in_splits = list(given.get("input_split_sizes") or [])
        made.out_splits = list(given.get("output_split_sizes") or [])
    if kind in ("send", "receive"):
        made.peer = int(given["dst"] if kind == "send" else given["src"])
        made.tag = int(given["tag"])
    return made


def _functional(op: Any, given: dict[str, Any]) -> Message | None:
    name = op._schema.name.split("::")[1].rstrip("_")
    if name not in _FUNCTIONAL:
        return None
    made = Message(
        _FUNCTIONAL[name],
        _flat(given.get("input", given.get("inputs"))),
        [],
        _group(given["group_name"]),
        str(given.get("reduce_op", "")),
        int(given.get("src", 0)),
    )
    if made.kind == "all_to_all":
        made.in_splits = [int(one) for one in given["input_split_sizes"]]
        made.out_splits = [int(one) for one in given["output_split_sizes"]]
    return made


_MANY = 16  # fewer numbers may be the same on all ranks by right: counts, norms, losses


class Exchange:
    """The same message once more with the numbers of the field."""

    def __init__(self, shadows: Any) -> None:
        self.shadows = shadows
        self._sent: list[Any] = []

    @staticmethod
    def _from_all(group: Any, mine: Tensor) -> list[Tensor]:
        """What each member of the group has, of any length."""
        size = group.size()
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
        group.allgather([lengths], [torch.tensor([mine.numel()])]).wait()
        longest = max(int(one) for one in lengths)
        padded = torch.zeros(longest, dtype=mine.dtype)
        padded[: mine.numel()] = mine
        parts = [torch.zeros(longest, dtype=mine.dtype) for _ in range(size)]
        group.allgather([parts], [padded]).wait()
        return [part[: int(n)] for part, n in zip(parts, lengths, strict=True)]

    def numbers(self, tensors: list[Tensor]) -> Tensor:
        parts = [self.shadows.of(one).reshape(-1) for one in tensors]
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.int64)

    def before(self, message: Message) -> Any:
        """To be called before the message itself runs; what it gives is for `after`."""
        tensors = (*message.inputs, *message.outputs)
        if not any(t.dtype.is_floating_point or t.dtype == torch.uint8 for t in tensors):
            return None
        if message.kind == "send":
            numbers = self.numbers(message.inputs)
            work = message.group.send([numbers], message.peer, message.tag + 100_000)
            self._sent.append((work, numbers))
            return None
        if message.kind == "receive":
            return "receive"
        mine = self.numbers(message.inputs)
        values = None
        if message.reduction in ("max", "min"):
            flat = torch.cat([t.detach().reshape(-1).double() for t in message.inputs])
            values = self._from_all(message.group, flat)
        parts = self._from_all(message.group, mine)
        same = all(torch.equal(one, parts[0]) for one in parts)
        many = len(parts) > 1 and mine.numel() >= _MANY and bool(mine.any())
        message.repeats = message.reduction == "sum" and same and many
        return parts, values

    def after(self, message: Message, kept: Any) -> None:
        if kept is None:
            return
        if kept == "receive":
            self._receive_later(message)
            return
        parts, values = kept
        rank, size = message.group.rank(), message.group.size()
        from . import _field as field

        if message.kind in ("all_reduce", "reduce", "reduce_scatter"):
            whole = self._reduced(message, parts, values, field)
            if message.kind == "reduce_scatter":
                each = whole.numel() // size
                whole = whole[rank * each : (rank + 1) * each]
            if message.kind != "reduce" or rank == message.root:
                self._spread(message.outputs, whole)
        elif message.kind == "broadcast":
            self._spread(message.outputs, parts[message.root])
        elif message.kind == "all_gather":
            self._spread(message.outputs, self._interleaved(message, parts))
        elif message.kind == "gather":
            if rank == message.root:
                self._spread(message.outputs, torch.cat(parts))
        elif message.kind == "scatter":
            root = parts[message.root]
            each = root.numel() // size
            self._spread(message.outputs, root[rank * each : (rank + 1) * each])
        elif message.kind == "all_to_all":
            self._exchanged(message, parts, rank, size)

    def _interleaved(self, message: Message, parts: list[Tensor]) -> Tensor:
        """Of several tensors gathered in one call, each whole after the other."""
        if len(message.inputs) < 2:
            return torch.cat(parts)
        out, begin = [], 0
        for tensor in message.inputs:
            out += [part[begin : begin + tensor.numel()] for part in parts]
            begin += tensor.numel()
        return torch.cat(out)

    def _reduced(self, message: Message, parts: list[Tensor], values: Any, field: Any) -> Tensor:
        stacked = torch.stack(parts)
        if message.reduction in ("max", "min"):
            reals = torch.stack(values)
            at = reals.argmax(0) if message.reduction == "max" else reals.argmin(0)
            return stacked.gather(0, at.unsqueeze(0))[0]
        if message.reduction == "product":
            out = parts[0]
            for part in parts[1:]:
                out = out * part % field.P
            return out
        total = stacked.sum(0) % field.P
        if message.reduction == "avg":
            total = total * pow(len(parts), field.P - 2, field.P) % field.P
        return total  # type: ignore[no-any-return]

    def _exchanged(self, message: Message, parts: list[Tensor], rank: int, size: int) -> None:
        if len(message.inputs) == size and size > 1:  # a list of tensors
            lengths = [t.numel() for t in message.inputs]
            begin = sum(lengths[:rank])
            got = [part[begin : begin + lengths[rank]] for part in parts]
            self._spread(message.outputs, torch.cat(got))
            return
        first = message.inputs[0]
        row = first[0].numel() if first.dim() and first.shape[0] else 1
        rows = first.shape[0] if first.dim() else 0
        mine = message.in_splits or [rows // size] * size
        table = self._from_all(message.group, torch.tensor(mine))
        got = []
        for part, splits in zip(parts, table, strict=True):
            begin = int(splits[:rank].sum()) * row
            got.append(part[begin : begin + int(splits[rank]) * row])
        self._spread(message.outputs, torch.cat(got))

    def _spread(self, outputs: list[Tensor], numbers: Tensor) -> None:
        begin = 0
        for tensor in outputs:
            part = numbers[begin : begin + tensor.numel()]
            if part.numel() == tensor.numel():
                self.shadows.of(tensor).copy_(part.reshape(tensor.shape))
            begin += tensor.numel()

    def _receive_later(self, message: Message) -> None:
        for tensor in message.outputs:
            numbers = torch.zeros(tensor.numel(), dtype=torch.int64)
            work = message.group.recv([numbers], message.peer, message.tag + 100_000)

            def finish(
                work: Any = work, numbers: Tensor = numbers, tensor: Tensor = tensor
            ) -> None:
                work.wait()
                self.shadows.of(tensor).copy_(numbers.reshape(tensor.shape))

            self.shadows.later(tensor, finish)
