"""DeepSpeed beneath a Recorder: where its steps begin and end, and what its optimizers hold.

Its engine reduces gradients behind the pass of autograd, and an optimizer of torch.optim may step
several times within one of its updates (a group of parts after the other). Names are those of
DeepSpeed 0.14 to 0.19: runtime/engine.py, runtime/zero/stage_1_and_2.py, stage3.py,
runtime/bf16_optimizer.py, fp16/fused_optimizer.py.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

_GRADIENTS = ("averaged_gradients", "grad_partitions_flat_buffer", "fp32_groups_gradients_flat")


def engine_class() -> Any:
    """The class of its engines, or None where the package is not in use."""
    module = sys.modules.get("deepspeed.runtime.engine")
    return None if module is None else module.DeepSpeedEngine


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)


def parameters_of(engine: Any) -> Iterator[Tensor]:
    """Those of the module, and of stage 3 also the parts that they rest in."""
    for parameter in engine.module.parameters():
        yield from _tensors([parameter.data, getattr(parameter, "ds_tensor", None)])


def gradients_of(engine: Any) -> Iterator[Tensor]:
    """Those that wait for the update. What stages 2 and 3 have not divided yet is on its way."""
    if engine.zero_optimization_stage() < 2:
        yield from _tensors([one.grad for one in engine.module.parameters()])
    for name in _GRADIENTS:
        yield from _tensors(getattr(engine.optimizer, name, None))


def masters_of(engine: Any, updated: Iterable[Any]) -> Iterator[Tensor]:
    """Of what inner optimizers update that which is not the module's own."""
    own = {one.untyped_storage().data_ptr() for one in parameters_of(engine)}
    return (one for one in _tensors(list(updated)) if one.untyped_storage().data_ptr() not in own)


def _nothing(engine: Any) -> None:
    pass


def around(owner: Any, name: str, before: Any, after: Any = _nothing) -> Any:
    """Calls `before(engine)` and `after(engine)` around a method; gives what takes that back."""
    call = getattr(owner, name)

    @functools.wraps(call)
    def run(engine: Any, *args: Any, **kwargs: Any) -> Any:
        before(engine)
        out = call(engine, *args, **kwargs)
        after(engine)
        return out

    setattr(owner, name, run)
    return lambda: setattr(owner, name, call)
