"""What a rank sends in each step, and what rests on it: a record for `audit`."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ._engines import Engine, around, engines
from ._messages import Message
from ._watch import Watch

_NAMES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.uint8: "uint8",
    torch.bool: "bool",
}


def _local(tensor: Tensor) -> Tensor:
    inner = getattr(tensor, "_local_tensor", None)
    return inner if isinstance(inner, Tensor) else tensor


def _bytes(tensors: Iterable[Any]) -> int:
    """Bytes of the tensors, each part of memory once: those that share memory have no more than
    there is of it."""
    parts: dict[tuple[int, int], dict[int, int]] = {}
    for one in tensors:
        if isinstance(one, Tensor):
            own = _local(one)
            memory = own.untyped_storage()
            if own.numel():
                views = parts.setdefault((memory.data_ptr(), memory.nbytes()), {})
                size = own.numel() * own.element_size()
                views[own.storage_offset()] = max(size, views.get(own.storage_offset(), 0))
    return sum(min(there, sum(views.values())) for (_, there), views in parts.items())


class Recorder(Watch):
    """A context: every collective inside is noted, step by step. On any backend; a step ends with
    each `step()` of an optimizer of torch.optim.

        with Recorder() as recorder:
            train()
        recorder.save("record.json")       # rank 0 writes record.json, rank 3 record.3.json
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[dict[str, Any]] = []
        self._messages: list[dict[str, Any]] = []
        self._hooks: list[Any] = []
        self._backwards = 0  # passes of autograd that are under way
        self._since = 0  # messages of the step up to the end of its last backward pass
        self._open = False  # whether what comes behind an update belongs to its step
        self._rest: dict[str, int] | None = None

    def __enter__(self) -> Recorder:
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        self._depth = 0
        self._stepping: list[Any] = []
        self._updated: list[Any] = []  # what inner optimizers hold while they step
        self._gradients = 0
        self._hooks = [
            register_optimizer_step_pre_hook(self._begin_update),
            register_optimizer_step_post_hook(self._end_update),
        ]
        self._undo: list[Any] = []
        self._count_as_backward(torch.autograd, "_engine_run_backward")
        stages = sys.modules.get("torch.distributed.pipelining.stage")
        if (
            stages is not None
        ):  # reduces gradients after the last micro-batch, outside of all passes
            self._count_as_backward(stages._PipelineStageBase, "perform_reduce_grad")
        for engine in engines():
            self._follow(engine)
        super().__enter__()
        return self

    def __exit__(self, *what: Any) -> None:
        super().__exit__(*what)
        for undo in self._undo:
            undo()
        for hook in self._hooks:
            hook.remove()

    def _count_as_backward(self, owner: Any, name: str) -> None:
        """A pass of autograd with what engines do at its end, outside of any of its nodes."""
        call = getattr(owner, name, None)
        if call is None:
            return

        @functools.wraps(call)
        def run(*args: Any, **kwargs: Any) -> Any:
            self._backwards += 1
            try:
                return call(*args, **kwargs)
            finally:
                self._backwards -= 1
                self._since = len(self._messages)

        setattr(owner, name, run)
        self._undo.append(lambda: setattr(owner, name, call))

    def phase_now(self) -> str:
        return "backward" if self._backwards else super().phase_now()

    def _begin_update(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._depth += 1
        self.phase = "update"
        self._stepping = [*self._stepping, optimizer] if self._depth > 1 else [optimizer]
        self._updated += [p for group in optimizer.param_groups for p in group["params"]]

    def _end_update(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._depth -= 1
        if self._depth:
            return
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._updated = []
        self._end_step(
            {
                "parameters": _bytes(parameters),
                "gradients": _bytes(p.grad for p in parameters),
                "optimizer": _bytes(self._states()),
            }
        )

    def _follow(self, engine: Engine) -> None:
        """Ends steps with those of an engine that has optimizers of its own."""

        def note(one: Any) -> None:
            self._gradients = max(self._gradients, _bytes(engine.gradients(one)))

        def begin(one: Any) -> None:
            note(one)  # the update lets go of them
            self._depth += 1
            self.phase = "update"
            self._stepping = self._stepping if self._depth > 1 else []

        def end(one: Any) -> None:
            self._depth -= 1
            if self._depth:
                return
            masters = engine.masters(one, self._updated)
            rest = {
                "parameters": _bytes(engine.parameters(one)),
                "gradients": self._gradients,
                "optimizer": _bytes([*self._states(), *masters]),
            }
            self._updated, self._gradients = [], 0
            self._end_step(rest)

        for owner, name in engine.passes:
            self._count_as_backward(owner, name)
        self._undo += [around(one, before=note) for one in engine.reductions]
        self._undo += [around(one, before=begin, after=end) for one in engine.updates]

    def _states(self) -> list[Tensor]:
        return [
            one
            for inner in self._stepping
            for state in inner.state.values()
            if isinstance(state, dict)
            for one in state.values()
            if isinstance(one, Tensor) and one.dim()
        ]

    @contextlib.contextmanager
    def update(self) -> Iterator[None]:
        """Around an optimizer's step and what a training loop reports behind it, such as a loss
        that is summed for a log: all of that belongs to the step that ends."""
        self._open, self._rest = True, None
        try:
            yield
        finally:
            self._open = False
        if self._rest is not None:
            self._end_step(self._rest)

    def _end_step(self, rest: dict[str, int]) -> None:
        if self._open:
            self._rest = rest
            return
        self.phase = "forward"
        for message in self._messages[self._since :]:
            message["phase"] = "update"  # what lies between backward and update, such as clipping
        self._since = 0
        self.steps.append({"messages": self._messages, "rest_bytes": rest})
        self._messages = []

    def message(self, message: Message, op: Any, args: Any, kwargs: Any) -> Any:
        place, phase = self.places.here(), self.phase_now()
        out = op(*args, **kwargs)
        if not message.outputs:
            message.outputs = [
                one
                for one in (out if isinstance(out, (list, tuple)) else [out])
                if isinstance(one, Tensor)
            ]
        tensors = message.whole
        if tensors:
            self._messages.append(
                {
                    "collective": message.kind,
                    "op": message.reduction or "none",
                    "ranks": message.ranks(),
                    "group": len(message.ranks()),
                    "dtype": _NAMES.get(tensors[0].dtype, str(tensors[0].dtype)),
                    "count": sum(t.numel() for t in tensors),
                    "payload_bytes": sum(t.numel() * t.element_size() for t in tensors),
                    "phase": phase,
                    "place": place,
                }
            )
        return out

    def document(self) -> dict[str, Any]:
        on = dist.is_available() and dist.is_initialized()
        return {
            "schema": "placet.torch.record/1",
            "rank": dist.get_rank() if on else int(os.environ.get("RANK", "0")),
            "world": dist.get_world_size() if on else int(os.environ.get("WORLD_SIZE", "1")),
            "steps": self.steps,
            "after": self._messages,
        }

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes the record of this rank, and gives the name of the file."""
        document = self.document()
        root, end = os.path.splitext(os.fspath(path))
        name = f"{root}.{document['rank']}{end}" if document["rank"] else os.fspath(path)
        with open(name, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return name
