"""tp.py [sp] [loss] [fsdp]: every rank has the same samples but for fsdp, where two share them."""

import contextlib
import os
import sys

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

dist.init_process_group("gloo")
world = int(os.environ["WORLD_SIZE"])
ways = 2 if "fsdp" in sys.argv and world > 1 else 1
mesh = init_device_mesh("cpu", (ways, world // ways), mesh_dim_names=("dp", "tp"))
tp = mesh["tp"]
torch.manual_seed(0)
model = Decoder()
sp, in_parts = "sp" in sys.argv, "loss" in sys.argv
rows = Shard(1) if sp else Replicate()
plan = {
    "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=rows),
    "head": ColwiseParallel(
        input_layouts=rows,
        output_layouts=Shard(-1) if in_parts else Replicate(),
        use_local_output=not in_parts,
    ),
}
if sp:
    plan["norm"] = SequenceParallel()
parallelize_module(model, tp, plan)
for block in model.blocks:
    plan = {f"attention.{one}": ColwiseParallel() for one in "qkv"} | {
        "mlp.gate": ColwiseParallel(),
        "mlp.up": ColwiseParallel(),
        "attention.o": RowwiseParallel(output_layouts=rows),
        "mlp.down": RowwiseParallel(output_layouts=rows),
    }
    if sp:
        whole = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
        plan |= {
            "norm1": SequenceParallel(),
            "norm2": SequenceParallel(),
            "attention": whole,
            "mlp": whole,
        }
    parallelize_module(block, tp, plan)
if "fsdp" in sys.argv:
    for block in model.blocks:
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
for words, labels in loader(4, mesh["dp"].get_local_rank(), ways):
    with loss_parallel() if in_parts else contextlib.nullcontext():
        loss_of(model(words), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
