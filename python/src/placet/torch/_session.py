"""One rank of a checked run: the script as it is, watched, until enough updates were made."""

from __future__ import annotations

import functools
import gc
import os
import runpy
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from . import _field
from ._messages import Message
from ._operators import squared
from ._watch import FieldWatch


@dataclass
class Options:
    script: str
    arguments: list[str] = field(default_factory=list)
    reference_arguments: list[str] | None = None
    world: int = 2
    data_parallel: int = 0  # 0: all ranks
    steps: int = 2
    timeout: float = 120.0
    scaled_loaders: bool = True  # the one device takes what all replicas take together


def replicas(options: Options) -> int:
    """Ranks with samples of their own."""
    return options.data_parallel or options.world


class Enough(BaseException):
    """All updates that were asked for have been made."""


def local(tensor: Tensor) -> Tensor:
    """What the rank itself holds of a distributed tensor."""
    inner = getattr(tensor, "_local_tensor", None)
    return inner if isinstance(inner, Tensor) else tensor


@dataclass
class Held:
    """A tensor that an optimizer updates, on one rank: numbers of its entries, before the first
    update (by which they are known), of its gradient as the update takes it, after it."""

    name: str
    shape: list[int]
    key: Tensor
    gradient: Tensor | None
    after: Tensor | None = None


class Session(FieldWatch):
    def __init__(self, options: Options, is_reference: bool) -> None:
        super().__init__()
        self.options = options
        self.is_reference = is_reference
        self.loads: list[int] = []  # samples that data loaders were asked for at a time
        self.updates: list[list[Held]] = []
        self.backwards: list[tuple[str, int]] = []
        self.step_places: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.values: list[Tensor] = []
        self.samples: list[int] = []
        self.said: dict[str, list[str]] = {"clip": [], "loader": [], "seed": []}
        self.made_places: dict[str, str] = {}
        self._keys: dict[tuple[int, int], Tensor] = {}
        self._calls = {"filled": 0, "registered": 0}
        self._names: dict[int, str] = {}
        self._stepped: set[int] = set()  # optimizers, each of which updates what it was given
        self._depth = 0
        self._open: list[Held] = []
        self._undo: list[Callable[[], None]] = []

    # --- what the script is watched with -----------------------------------------------------

    def _patch(self, owner: Any, name: str, wrapped: Callable[[Any], Any]) -> None:
        before = getattr(owner, name)
        setattr(owner, name, functools.wraps(before)(wrapped(before)))
        self._undo.append(lambda: setattr(owner, name, before))

    def prepare(self) -> None:
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        for hook in (
            register_optimizer_step_pre_hook(self._before_update),
            register_optimizer_step_post_hook(self._after_update),
        ):
            self._undo.append(hook.remove)
        for name in ("ones_", "zeros_", "constant_"):
            self._patch(torch.nn.init, name, self._generic)
        self._patch(torch.nn.Module, "register_parameter", self._registering)
        self._patch(torch.Tensor, "backward", self._backward)
        self._patch(torch.optim.Optimizer, "__init__", self._making_optimizer)
        self._patch(dist, "init_process_group", self._starting)
        self._patch(dist.distributed_c10d, "init_process_group", self._starting)
        if self.is_reference:
            ways = replicas(self.options) if self.options.scaled_loaders else 1
            self._patch(torch.utils.data.DataLoader, "__init__", self._loading(ways))
        else:
            self._patch(torch.utils.data.DataLoader, "__init__", self._loading(1))
        for name in (
            "clip_grad_norm_",
            "clip_grad_value_",
            "get_total_norm",
            "clip_grads_with_norm_",
        ):
            self._patch(torch.nn.utils, name, self._clipping)
        self._patch(torch, "manual_seed", self._seeding)
        self._patch(torch.cuda, "set_device", lambda _: lambda *a, **k: None)

    def restore(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def _loading(self, ways: int) -> Callable[[Any], Any]:
        """The one device of the reference takes at a time what all replicas take together."""

        def wrapped(make: Any) -> Any:
            def run(this: Any, dataset: Any, batch_size: Any = 1, *args: Any, **kw: Any) -> None:
                self.said["loader"].append(self.places.here())
                kw["num_workers"] = 0
                kw.pop("prefetch_factor", None)
                kw.pop("persistent_workers", None)
                kw.pop("multiprocessing_context", None)
                if batch_size is not None and kw.get("batch_sampler") is None:
                    self.loads.append(int(batch_size))
                    batch_size = batch_size * ways
                make(this, dataset, batch_size, *args, **kw)

            return run

        return wrapped

    def _starting(self, start: Any) -> Any:
        def run(*args: Any, **kw: Any) -> Any:
            args = args[1:]
            kw.pop("backend", None)
            kw.pop("device_id", None)
            kw["timeout"] = timedelta(seconds=self.options.timeout)
            return start("gloo", *args, **kw)

        return run

    def _making_optimizer(self, make: Any) -> Any:
        def run(this: Any, *args: Any, **kw: Any) -> Any:
            self.made_places.setdefault(type(this).__name__, self.places.here())
            return make(this, *args, **kw)

        return run

    def _seeding(self, seed: Any) -> Any:
        def run(*args: Any, **kw: Any) -> Any:
            self.said["seed"].append(self.places.here())
            return seed(*args, **kw)

        return run

    def _clipping(self, clip: Any) -> Any:
        def run(*args: Any, **kw: Any) -> Any:
            place = self.places.here()
            self.said["clip"].append(place)
            out = clip(*args, **kw)
            norm = local(out) if isinstance(out, Tensor) else None
            if norm is not None and norm.device.type == "cpu":
                with self.aside():
                    number = self.shadows.of(norm.detach()).reshape(-1)
                    self._note("norm", [0], "", place, number)
                    self.messages[-1]["square"] = int(squared(number)[0])
            return out

        return run

    def _backward(self, go: Any) -> Any:
        def run(this: Tensor, *args: Any, **kw: Any) -> Any:
            place = self.places.here()
            if isinstance(this, Tensor) and local(this).device.type == "cpu" and this.numel() == 1:
                number = int(self.shadows.of(local(this)).reshape(-1)[0])
                self.backwards.append((place, number))
            given = args[0] if args else kw.get("gradient")
            if isinstance(given, Tensor) and type(given) is Tensor and given.device.type == "cpu":
                with self.aside():
                    numbers = self.shadows.of(given.detach()).reshape(-1)
                    self._note("gradient", [], "", place, numbers)
            return go(this, *args, **kw)

        return run

    def _fresh(self, tensor: Tensor, how: str) -> None:
        """Parameters that begin as constants get numbers of their own, since what holds for all
        numbers has to hold for these. All calls are counted, whatever stands in the memory."""
        tensor = local(tensor)
        if tensor.device.type != "cpu" or not tensor.dtype.is_floating_point:
            return
        with self.aside(), torch.no_grad():
            at = torch.arange(tensor.numel()).reshape(tensor.shape)
            salt = _field.salt_of(how, self._calls[how])
            self.shadows.of(tensor.detach()).copy_(_field.scramble(at, salt))

    def _generic(self, fill: Any) -> Any:
        def run(tensor: Tensor, *args: Any, **kw: Any) -> Any:
            out = fill(tensor, *args, **kw)
            self._calls["filled"] += 1
            self._fresh(tensor, "filled")
            return out

        return run

    def _registering(self, register: Any) -> Any:
        def run(this: Any, name: str, param: Any) -> None:
            register(this, name, param)
            self._calls["registered"] += 1
            if not isinstance(param, Tensor) or local(param).numel() == 0:
                return
            own = local(param).detach()
            if own.device.type != "cpu" or not own.dtype.is_floating_point:
                return
            if not own.untyped_storage().nbytes():
                return
            with self.aside():
                numbers = self.shadows.of(own)
                same = bool((own == own.reshape(-1)[0]).all())
                if same and bool((numbers == numbers.reshape(-1)[0]).all()):
                    self._fresh(own, "registered")

        return run

    # --- updates ------------------------------------------------------------------------------

    def _find_names(self) -> None:
        modules = [one for one in gc.get_objects() if isinstance(one, torch.nn.Module)]
        children = {id(child) for one in modules for child in one.children()}
        for root in modules:
            if id(root) in children:
                continue
            for name, parameter in root.named_parameters():
                known = self._names.get(id(parameter))
                if known is None or len(name) > len(known):
                    self._names[id(parameter)] = name

    def _before_update(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._depth += 1
        if self._depth > 1:  # one that another one calls
            return
        with self.aside(), torch.no_grad():
            if not self._names:
                self._find_names()
            self.step_places.append(self.places.here())
            self._open = []
            at = 0
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    self._open.append(self._held(id(optimizer), at, parameter))
                    at += 1

    def _held(self, optimizer: int, at: int, parameter: Tensor) -> Held:
        own = local(parameter).detach()
        numbers = self.shadows.of(own).clone().reshape(-1)
        key = self._keys.setdefault((optimizer, at), numbers)
        gradient = parameter.grad
        return Held(
            self._names.get(id(parameter), f"parameter {at}"),
            list(parameter.shape),
            key,
            None
            if gradient is None
            else self.shadows.of(local(gradient).detach()).clone().reshape(-1),
        )

    def _after_update(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._depth -= 1
        if self._depth:
            return
        with self.aside(), torch.no_grad():
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            for held, parameter in zip(self._open, parameters, strict=False):
                held.after = self.shadows.of(local(parameter).detach()).clone().reshape(-1)
            self.updates.append(self._open)
        self._stepped.add(id(optimizer))
        if len(self.updates) >= self.options.steps * len(self._stepped):
            raise Enough

    # --- what there is ------------------------------------------------------------------------

    def seen(self, outputs: list[Tensor], message: Message | None) -> None:
        if self.is_reference:
            for one in outputs:
                self.values.append(self.shadows.of(one).reshape(-1).clone())
        elif message is not None and outputs and message.kind != "send":
            numbers = torch.cat([self.shadows.of(one).reshape(-1) for one in outputs])
            place = self.places.here()
            self._note(message.kind, message.ranks(), message.reduction, place, numbers)
            self.messages[-1]["repeats"] = message.repeats

    def _note(self, kind: str, ranks: list[int], by: str, place: str, numbers: Tensor) -> None:
        self.messages.append(
            {
                "kind": kind,
                "ranks": ranks,
                "reduction": by,
                "place": place,
                "phase": self.phase_now(),
                "update": len(self.updates),
                "numbers": numbers[:4096].clone(),
                "count": numbers.numel(),
            }
        )

    def result(self) -> dict[str, Any]:
        values = torch.cat(self.values).unique() if self.values else torch.zeros(0).long()
        return {
            "updates": [[vars(held) for held in update] for update in self.updates],
            "backwards": self.backwards,
            "step_places": self.step_places,
            "messages": self.messages,
            "values": values,
            "unknown": self.unknown,
            "operators": self.operators,
            "optimizers": self.made_places,
            "said": self.said,
            "loads": self.loads,
        }


def run_rank(
    options: Options, rank: int, world: int, port: int, is_reference: bool, to: str
) -> None:
    """Runs the script as one rank, and leaves what was seen in a file."""
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(world),
        LOCAL_WORLD_SIZE=str(world),
        GROUP_RANK="0",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        OMP_NUM_THREADS="1",
        TORCHDYNAMO_DISABLE="1",
        CUDA_VISIBLE_DEVICES="",
        ACCELERATE_USE_CPU="true",
    )
    torch.set_num_threads(1)
    torch.manual_seed(0)
    arguments = options.arguments
    if is_reference and options.reference_arguments is not None:
        arguments = options.reference_arguments
    sys.argv = [options.script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
    session = Session(options, is_reference)
    session.prepare()
    error = ""
    try:
        with session:
            runpy.run_path(options.script, run_name="__main__")
    except (Enough, SystemExit):
        pass
    except BaseException:
        error = traceback.format_exc()
    session.restore()
    torch.save({**session.result(), "error": error}, to)
