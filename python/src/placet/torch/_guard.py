"""One line in a training loop that watches what has to hold on any number of ranks.

At sampled updates: ranks that hold the same tensor hold the same bits (a digest of each); the
gradient that an update takes is the mean of what all replicas computed (a linear sketch: the
product with a random vector of signs, which sums and means keep; of fully_shard's parts the
sketches add up to it); numbers that steer the update are the same everywhere. All of it is a few
small messages, whatever the size of the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ._guard_shards import Shards, gathered, speaks_of_host
from ._sketch import digest, sketch


class GuardError(RuntimeError):
    """What has to hold does not. tensor, axis, ranks and step say where."""

    def __init__(self, what: str, tensor: str, axis: str, ranks: list[int], step: int) -> None:
        where = f"ranks {', '.join(map(str, ranks))}" if ranks else "all ranks"
        super().__init__(f"step {step}, {where}, along {axis}: {tensor}: {what}")
        self.what, self.tensor, self.axis, self.ranks, self.step = what, tensor, axis, ranks, step


class _Axis:
    """Ranks that should hold the same tensors, and these."""

    def __init__(self, name: str, group: Any) -> None:
        self.name, self.group = name, group
        self.names: list[str] = []
        self.tensors: list[Tensor] = []

    def ranks(self) -> list[int]:
        return list(dist.get_process_group_ranks(self.group))


class Guard:
    """See `guard`."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        every: int = 100,
        on_fault: str = "stop",
        group: Any = None,
        replicated: bool = True,
        average: bool = True,
    ) -> None:
        if on_fault not in ("stop", "warn"):
            raise ValueError(f"on_fault: {on_fault!r} is not known; expected stop or warn")
        if every < 1:
            raise ValueError(f"every: {every} is not possible; expected at least 1")
        self.optimizer, self.every, self.on_fault = optimizer, every, on_fault
        self.average, self.step, self.checked = average, 0, 0
        self.faults: list[GuardError] = []
        self.group = group if group is not None else dist.group.WORLD
        self._named = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
        self._axes = self._find_axes(model, replicated)
        self._sketched = [
            (name, one)
            for name, one in self._named
            if replicated and not hasattr(one, "_local_tensor")
        ]
        self._shards = Shards(model)
        self._shards.on = True
        self._sketch: dict[str, Tensor] = {}
        self._norm: float | None = None
        self._gradients_seen = False
        self._hooks: list[Any] = []
        self._attach()

    # --- what belongs together ----------------------------------------------------------------

    def _find_axes(self, model: torch.nn.Module, replicated: bool) -> list[_Axis]:
        axes: dict[str, _Axis] = {}
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if hasattr(tensor, "_local_tensor"):
                mesh = tensor.device_mesh  # type: ignore[attr-defined]
                for at, placement in enumerate(tensor.placements):  # type: ignore[attr-defined]
                    if placement.is_replicate() and mesh.size(at) > 1:
                        word = (mesh.mesh_dim_names or [f"dim {i}" for i in range(mesh.ndim)])[at]
                        self._add(axes, word, mesh.get_group(at), name, tensor)
            elif replicated and tensor.numel():
                self._add(axes, "replicas", self.group, name, tensor)
        return list(axes.values())

    @staticmethod
    def _add(axes: dict[str, _Axis], word: str, group: Any, name: str, tensor: Tensor) -> None:
        axis = axes.setdefault(word, _Axis(word, group))
        axis.names.append(name)
        axis.tensors.append(tensor)

    def _attach(self) -> None:
        self._hooks.append(self.optimizer.register_step_pre_hook(self._before))
        self._hooks.append(self.optimizer.register_step_post_hook(self._after))
        for at, (name, parameter) in enumerate(self._sketched):
            self._hooks.append(parameter.register_hook(self._sketching(at, name)))
        clip = torch.nn.utils.clip_grad_norm_
        self._clip = clip

        def clipped(*args: Any, **kw: Any) -> Any:
            self._check_gradients()
            norm = clip(*args, **kw)
            self._norm = float(norm) if self._due else None
            return norm

        torch.nn.utils.clip_grad_norm_ = clipped

    def close(self) -> None:
        """Ends the watch."""
        for hook in self._hooks:
            hook.remove()
        self._shards.close()
        torch.nn.utils.clip_grad_norm_ = self._clip

    @property
    def _due(self) -> bool:
        return self.step % self.every == 0

    def _sketching(self, at: int, name: str) -> Callable[[Tensor], None]:
        def note(gradient: Tensor) -> None:
            if not self._due:
                return
            part = sketch(gradient, at)
            before = self._sketch.get(name)
            self._sketch[name] = part if before is None else before + part

        return note

    # --- what is asked ------------------------------------------------------------------------

    def _tell(self, fault: GuardError) -> None:
        self.faults.append(fault)
        if self.on_fault == "stop":
            raise fault
        warnings.warn(str(fault), stacklevel=4)

    def _before(self, *unused: Any) -> None:
        if not self._due:
            return
        self._check_gradients()
        self._check_numbers()

    def _check_gradients(self) -> None:
        """Once before each update, ahead of clipping."""
        if not self._due or self._gradients_seen:
            return
        self._gradients_seen = True
        if self.average:
            self._check_shards()
        if self._sketched:
            self._check_sketches()

    def _check_shards(self) -> None:
        for name, axis, ranks, found, expected in self._shards.differences():
            self._tell(
                GuardError(
                    f"the gradient is not the mean of what ranks handed to the reduction "
                    f"(sketch {found:.6g}, expected {expected:.6g})",
                    name,
                    axis,
                    ranks,
                    self.step,
                )
            )
            return

    def _check_sketches(self) -> None:
        rows = []
        for at, (name, parameter) in enumerate(self._sketched):
            none = torch.zeros(2, device=parameter.device)
            ours = none if parameter.grad is None else sketch(parameter.grad, at)
            rows.append(torch.cat([self._sketch.get(name, none), ours]))
        self._sketch.clear()
        device = rows[0].device
        everyone = gathered(torch.stack([row.to(device) for row in rows]), self.group).double()
        size = everyone.shape[0]
        expected = everyone[:, :, 0].sum(0) / (size if self.average else 1)
        # Rounding: that of sums of so many numbers of their size, in the format of the gradient.
        spread = everyone[:, :, 1].sum(0).sqrt() + everyone[:, :, 3].max(0).values.sqrt()
        coarse = [
            2**-6 if p.dtype in (torch.bfloat16, torch.float16) else 2**-15
            for _, p in self._sketched
        ]
        allowed = spread * torch.tensor(coarse, dtype=torch.float64) + 1e-30
        off = ~((everyone[:, :, 2] - expected).abs() <= allowed)  # so is what is no number
        if bool(off.any()):
            at = int(off.any(0).nonzero()[0])
            ranks = [
                dist.get_process_group_ranks(self.group)[r]
                for r in off[:, at].nonzero()[:, 0].tolist()
            ]
            found, wanted = float(everyone[off[:, at]][0, at, 2]), float(expected[at])
            word = "mean" if self.average else "sum"
            self._tell(
                GuardError(
                    f"the gradient is not the {word} of what the replicas computed "
                    f"(sketch {found:.6g}, "
                    f"expected {wanted:.6g})",
                    self._sketched[at][0],
                    "replicas",
                    ranks,
                    self.step,
                )
            )

    def _sent(self, numbers: list[float]) -> Tensor:
        """Numbers beside the model's first parameter, from where the group can send them."""
        device = next((one.device for _, one in self._named), torch.device("cpu"))
        host = speaks_of_host(str(dist.get_backend(self.group)))
        return torch.tensor(numbers, dtype=torch.float64, device="cpu" if host else device)

    def _check_numbers(self) -> None:
        words, mine = [], []
        for at, group in enumerate(self.optimizer.param_groups):
            for key, value in group.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    words.append(f"{key} of parameter group {at}")
                    mine.append(float(value))
        if self._norm is not None:
            words.append("the gradient's norm")
            mine.append(self._norm)
        everyone = gathered(self._sent(mine), self.group)
        for at, word in enumerate(words):
            column = everyone[:, at]
            near = word == "the gradient's norm"
            bound = 1e-4 * float(column.abs().max()) if near else 0.0
            apart = (column - column.median()).abs() > bound
            if bool(apart.any()):
                ranks = [
                    dist.get_process_group_ranks(self.group)[r]
                    for r in apart.nonzero()[:, 0].tolist()
                ]
                self._tell(
                    GuardError(f"ranks have {column.tolist()}", word, "replicas", ranks, self.step)
                )
                return

    def _after(self, *unused: Any) -> None:
        if self._due:
            self._check_state()
            self.checked += 1
        self.step += 1
        self._shards.on = self._due
        self._norm = None
        self._gradients_seen = False

    def _check_state(self) -> None:
        for axis in self._axes:
            digests = [digest(one) for one in axis.tensors]
            mine = torch.stack([one.to(digests[0].device) for one in digests])
            everyone = gathered(mine, axis.group)
            most = everyone.mode(0).values
            off = everyone != most
            if bool(off.any()):
                at = int(off.any(0).nonzero()[0])
                wrong = off[:, at]
                if 2 * int(wrong.sum()) >= wrong.numel():  # no majority says who is right
                    wrong = torch.ones_like(wrong)
                ranks = [axis.ranks()[r] for r in wrong.nonzero()[:, 0].tolist()]
                self._tell(
                    GuardError(
                        "ranks that should hold the same hold different numbers",
                        axis.names[at],
                        axis.name,
                        ranks,
                        self.step,
                    )
                )
                return


def guard(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    every: int = 100,
    on_fault: str = "stop",
    group: Any = None,
    replicated: bool = True,
    average: bool = True,
) -> Guard:
    """Watches a model and its optimizer from now on.

    every: at which updates (the first, then each so many); on_fault: stop (GuardError) or warn.
    group: the ranks that are replicas of each other (default: all); replicated=False: plain
    tensors are the rank's own, as in pipelines and cuts by hand. average=False: gradients are
    summed over replicas. Tensors of a DeviceMesh are compared along the axes on which they are
    whole; of those that fully_shard cuts along their first dim, the gradient's parts are compared
    with what ranks handed to its reduction.
    """
    return Guard(
        model,
        optimizer,
        every=every,
        on_fault=on_fault,
        group=group,
        replicated=replicated,
        average=average,
    )
