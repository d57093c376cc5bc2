"""Engines that reduce gradients and update parameters by themselves, beneath a Recorder: where
their steps end, and what they hold between steps.

They reduce gradients behind the pass of autograd, and an optimizer of torch.optim may step several
times within one of their updates (a group of parts after the other). Names are those of DeepSpeed
0.14 to 0.19 and of Megatron-Core 0.12 to 0.16; a name that a version lacks is passed over.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

Method = tuple[Any, str]


@dataclass(frozen=True)
class Engine:
    """`passes` belong to backward, `reductions` begin the reduction of whole gradients, `updates`
    are its steps. `parameters` and `gradients` take what `updates` are methods of."""

    passes: list[Method]
    reductions: list[Method]
    updates: list[Method]
    parameters: Callable[[Any], Iterator[Tensor]]
    gradients: Callable[[Any], Iterator[Tensor]]

    def masters(self, engine: Any, updated: Iterable[Any]) -> Iterator[Tensor]:
        """Of what inner optimizers update that which is not the model's own."""
        own = {_memory(one) for one in self.parameters(engine)}
        return (one for one in _tensors(list(updated)) if _memory(one) not in own)


def engines() -> list[Engine]:
    """Those whose packages are in use."""
    made = [
        _deepspeed(sys.modules.get("deepspeed.runtime.engine")),
        _megatron(sys.modules.get("megatron.core.optimizer")),
    ]
    return [one for one in made if one is not None]


def clear_shared_memory(port: int) -> None:
    """Removes what engines leave in shared memory when their ranks are ended: DeepSpeed's buffers
    (csrc/cpu/comm/shm.cpp), named by the port at which the ranks met."""
    for path in glob.glob(f"/dev/shm/deepspeed_allreduce_buffer_*_{port}_*"):
        with contextlib.suppress(OSError):
            os.unlink(path)


def around(
    method: Method, before: Callable[[Any], None], after: Callable[[Any], None] | None = None
) -> Callable[[], None]:
    """Calls `before` and `after` with its first argument around a function; gives what takes that
    back."""
    owner, name = method
    call = getattr(owner, name)

    @functools.wraps(call)
    def run(first: Any, *args: Any, **kwargs: Any) -> Any:
        before(first)
        out = call(first, *args, **kwargs)
        if after is not None:
            after(first)
        return out

    setattr(owner, name, run)
    return lambda: setattr(owner, name, call)


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)


def _there(owner: Any, *names: str) -> list[Method]:
    return [(owner, name) for name in names if owner is not None and hasattr(owner, name)]


# --- DeepSpeed: runtime/engine.py, runtime/zero/stage_1_and_2.py, stage3.py, bf16_optimizer.py


def _deepspeed(module: Any) -> Engine | None:
    if module is None:
        return None
    owner = module.DeepSpeedEngine
    return Engine(
        passes=_there(owner, "backward"),
        reductions=_there(owner, "allreduce_gradients"),
        updates=_there(owner, "_take_model_step"),
        parameters=_deepspeed_parameters,
        gradients=_deepspeed_gradients,
    )


def _deepspeed_parameters(engine: Any) -> Iterator[Tensor]:
    """Those of the module, and of stage 3 also the parts that they rest in."""
    for parameter in engine.module.parameters():
        yield from _tensors([parameter.data, getattr(parameter, "ds_tensor", None)])


def _deepspeed_gradients(engine: Any) -> Iterator[Tensor]:
    """Those that wait for the update. What stages 2 and 3 have not divided yet is on its way."""
    if engine.zero_optimization_stage() < 2:
        yield from _tensors([one.grad for one in engine.module.parameters()])
    for name in ("averaged_gradients", "grad_partitions_flat_buffer", "fp32_groups_gradients_flat"):
        yield from _tensors(getattr(engine.optimizer, name, None))


# --- Megatron-Core: distributed/distributed_data_parallel.py, param_and_grad_buffer.py,
# finalize_model_grads.py, optimizer/optimizer.py


def _megatron(module: Any) -> Engine | None:
    if module is None:
        return None
    wrapper = sys.modules.get("megatron.core.distributed.distributed_data_parallel")
    final = sys.modules.get("megatron.core.distributed.finalize_model_grads")
    base = sys.modules["megatron.core.optimizer.optimizer"]
    kinds = ("ChainedOptimizer", "MixedPrecisionOptimizer", "FP32Optimizer")
    return Engine(
        passes=_there(
            getattr(wrapper, "DistributedDataParallel", None), "finish_grad_sync", "start_grad_sync"
        )
        + _there(
            final,
            "_allreduce_non_tensor_model_parallel_grads",
            "_allreduce_layernorm_grads",
            "_allreduce_word_embedding_grads",
            "_allreduce_embedding_grads",
        ),
        reductions=[],
        updates=[one for kind in kinds for one in _there(getattr(base, kind, None), "step")],
        parameters=_megatron_parameters,
        gradients=_megatron_gradients,
    )


def _megatron_buffers() -> Iterator[Any]:
    """Of all models that are wrapped: their gradients stand in buffers, parameters too where the
    optimizer is distributed."""
    wrapper = sys.modules["megatron.core.distributed.distributed_data_parallel"]
    for one in gc.get_objects():
        if type(one) is wrapper.DistributedDataParallel:
            yield from [*one.buffers, *getattr(one, "expert_parallel_buffers", [])]


def _megatron_parameters(optimizer: Any) -> Iterator[Tensor]:
    for buffer in _megatron_buffers():
        if buffer.param_data is None:
            yield from _tensors([one.data for one in buffer.params])
        else:
            yield buffer.param_data


def _megatron_gradients(optimizer: Any) -> Iterator[Tensor]:
    for buffer in _megatron_buffers():
        yield buffer.grad_data
