"""Gradients of fully_shard beside what each rank computed, as sketches.

A sketch is the product with signs: sums and means keep it, so that the sketches of what ranks hand
to the reduction have the mean that the sketches of all parts of the result add up to. No rank needs
more of a tensor than it has.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ._sketch import local, sketch


class Shards:
    """The parameters of a model that fully_shard divides along their first dim."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._names = {id(one): name for name, one in model.named_parameters()}
        self._numbers: dict[int, int] = {}  # of parameters, by when they were first reduced
        self._params: list[Any] = []
        self._handed: dict[int, Tensor] = {}
        self.on = False
        self._undo: Any = None
        if any(hasattr(one, "_local_tensor") for one in model.parameters()):
            self._watch()

    def _watch(self) -> None:
        """fully_shard hands all gradients of a group to one function, as autograd left them."""
        try:
            from torch.distributed.fsdp._fully_shard import _fsdp_param_group as module
        except ImportError:  # of another version
            return
        reduce = module.foreach_reduce

        @functools.wraps(reduce)
        def watched(params: Any, gradients: Any, *args: Any, **kwargs: Any) -> Any:
            if self.on:
                for param, gradient in zip(params, gradients, strict=False):
                    self._note(param, gradient)
            return reduce(params, gradients, *args, **kwargs)

        module.foreach_reduce = watched
        self._undo = lambda: setattr(module, "foreach_reduce", reduce)

    def close(self) -> None:
        if self._undo is not None:
            self._undo()

    def _is_known(self, param: Any) -> bool:
        """Whether it is one of the model's that is cut along its first dim."""
        placement = getattr(param, "fsdp_placement", None)
        return id(param.sharded_param) in self._names and getattr(placement, "dim", -1) == 0

    def _note(self, param: Any, gradient: Tensor) -> None:
        if not self._is_known(param):
            return
        key = id(param.sharded_param)
        if key not in self._numbers:
            self._numbers[key] = len(self._params)
            self._params.append(param)
        at = self._numbers[key]
        part = sketch(gradient, at)
        before = self._handed.get(at)
        self._handed[at] = part if before is None else before + part

    def _own_part(self, at: int) -> Tensor:
        """The sketch of the rank's part of the gradient that the update takes."""
        param = self._params[at]
        gradient = param.sharded_param.grad
        if gradient is None:
            return torch.zeros(2)
        info = param.mesh_info
        rows = int(param._orig_size[0])
        first = min(rows, info.shard_mesh_rank * -(-rows // info.shard_mesh_size))
        begin = first * (int(param._orig_size.numel()) // max(1, rows))
        return sketch(local(gradient), at, begin)

    def differences(self) -> list[tuple[str, str, list[int], float, float]]:
        """Of each parameter whose gradient is not the mean of what ranks handed in: name, axis,
        ranks, sketch found, sketch expected. All ranks of a mesh call it."""
        out = []
        by_mesh: dict[int, list[int]] = {}
        for at, param in enumerate(self._params):
            if at in self._handed:
                by_mesh.setdefault(id(param.mesh_info.shard_process_group), []).append(at)
        for numbers in by_mesh.values():
            out += self._of_mesh(numbers)
        self._handed.clear()
        return out

    def _of_mesh(self, numbers: list[int]) -> list[tuple[str, str, list[int], float, float]]:
        info = self._params[numbers[0]].mesh_info
        mine = torch.stack(
            [
                torch.cat([self._handed[at], self._own_part(at).to(self._handed[at])])
                for at in numbers
            ]
        )
        shards = gathered(mine, info.shard_process_group)
        total = shards.sum(0)  # over the shards of this replica
        ranks = [dist.get_process_group_ranks(info.shard_process_group)]
        replicas = total.unsqueeze(0)
        if getattr(info, "replicate_mesh_dim", None) is not None:
            replicas = gathered(total, info.replicate_process_group)
            mine_too = torch.tensor(ranks[0])
            ranks = [one.tolist() for one in gathered(mine_too, info.replicate_process_group)]
        replicas = replicas.double()
        ways = replicas.shape[0] * shards.shape[0]
        expected = replicas[:, :, 0].sum(0) / ways
        spread = replicas[:, :, 1].sum(0).sqrt() + replicas[:, :, 3].max(0).values.sqrt()
        coarse = [
            2**-6 if (self._params[at].reduce_dtype or torch.float32).itemsize < 4 else 2**-15
            for at in numbers
        ]
        allowed = spread * torch.tensor(coarse, dtype=torch.float64) + 1e-30
        off = ~((replicas[:, :, 2] - expected).abs() <= allowed)
        out = []
        for column in off.any(0).nonzero()[:, 0].tolist():
            name = self._names[id(self._params[numbers[column]].sharded_param)]
            wrong = off[:, column].nonzero()[:, 0].tolist()
            where = [rank for replica in wrong for rank in ranks[replica]]
            found = float(replicas[wrong[0], column, 2])
            out.append((name, "shards", where, found, float(expected[column])))
        return out


def gathered(mine: Tensor, group: Any) -> Tensor:
    """What every rank of a group holds in mine's place, on the host. mine may be on any device; of
    the host it is sent from the current device where the group knows no tensors of the host."""
    if mine.device.type == "cpu" and not speaks_of_host(str(dist.get_backend(group))):
        accelerator = getattr(torch, "accelerator", None)  # since 2.6
        mine = mine.to(accelerator.current_accelerator() if accelerator else "cuda")
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, mine, group=group)
    return torch.stack(parts).cpu()


def speaks_of_host(backend: str) -> bool:
    """Whether a backend, or one of several ("cpu:gloo,cuda:nccl"), sends tensors of the host."""
    return backend in ("gloo", "mpi", "fake", "threaded", "undefined") or "cpu:" in backend
