"""guarded.py RANKS STEPS EVERY: plants one fault after the other in a training step, and trains
without a fault; says what the guard says, as JSON. Starts its ranks itself."""

import json
import os
import socket
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from placet.torch import guard


def make(kind):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 16),
        nn.BatchNorm1d(16, track_running_stats=False),
        nn.Tanh(),
        nn.Linear(16, 4),
    )
    if kind == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        shape = (2, dist.get_world_size() // 2)
        fully_shard(model, mesh=init_device_mesh("cpu", shape, mesh_dim_names=("rep", "shard")))
        return model
    return DistributedDataParallel(model) if kind == "ddp" else model


def flip(tensor, at=0):
    """One bit of the mantissa."""
    with torch.no_grad():
        getattr(tensor, "_local_tensor", tensor).view(-1).view(torch.int32)[at] ^= 1 << 12


def weight(model, at):
    return list(model.parameters())[at]


def scaled(model, at, by):
    weight(model, at).grad.mul_(by)


# What happens in update 1 on rank 1: before it (b), after it (a), on every rank (every), or it is
# undone (s).
FAULTS = {
    "bit of a weight": ("a", lambda m, o: flip(weight(m, 0))),
    "bit of a bias": ("a", lambda m, o: flip(weight(m, 1), 3)),
    "bit of a norm": ("a", lambda m, o: flip(weight(m, 2), 5)),
    "bit of the last weight": ("a", lambda m, o: flip(weight(m, 4), 63)),
    "row set to zero": ("a", lambda m, o: weight(m, 4).data[0].zero_()),
    "rows in another order": ("a", lambda m, o: weight(m, 0).data.copy_(weight(m, 0).data.flip(0))),
    "sign of a weight": ("a", lambda m, o: weight(m, 0).data[0, 0].neg_()),
    "weights of two layers": ("a", lambda m, o: weight(m, 2).data.copy_(weight(m, 3).data)),
    "infinite": ("a", lambda m, o: weight(m, 0).data[3, 3].fill_(float("inf"))),
    "not updated": ("s", lambda m, o: None),
    "gradient twice": ("b", lambda m, o: scaled(m, 0, 2.0)),
    "gradient of a bias twice": ("b", lambda m, o: scaled(m, 5, 2.0)),
    "gradient half": ("b", lambda m, o: scaled(m, 0, 0.5)),
    "gradient zero": ("b", lambda m, o: scaled(m, 4, 0.0)),
    "gradient negated": ("b", lambda m, o: scaled(m, 4, -1.0)),
    "gradient one percent off": ("b", lambda m, o: scaled(m, 0, 1.01)),
    "row of the gradient lost": ("b", lambda m, o: weight(m, 0).grad[0].zero_()),
    "gradient transposed": (
        "b",
        lambda m, o: weight(m, 0).grad.copy_(weight(m, 0).grad.t().reshape(16, 8).clone()),
    ),
    "noise on the gradient": ("b", lambda m, o: weight(m, 0).grad.add_(0.05)),
    "gradient of another tensor": ("b", lambda m, o: weight(m, 2).grad.copy_(weight(m, 3).grad)),
    "gradient gone": ("b", lambda m, o: setattr(weight(m, 0), "grad", None)),
    "reduced twice": ("every", lambda m, o: dist.all_reduce(weight(m, 0).grad)),
    "scaled everywhere": ("every", lambda m, o: scaled(m, 4, 2.0)),
    "clipped on one rank": ("b", lambda m, o: [p.grad.mul_(0.9) for p in m.parameters()]),
    "learning rate": ("b", lambda m, o: o.param_groups[0].update(lr=0.02)),
    "weight decay": ("b", lambda m, o: o.param_groups[0].update(weight_decay=0.1)),
    "epsilon": ("b", lambda m, o: o.param_groups[0].update(eps=1e-6)),
    "moment lost": ("b", lambda m, o: o.state[weight(m, 0)]["exp_avg"].zero_()),
    "second moment scaled": ("b", lambda m, o: o.state[weight(m, 4)]["exp_avg_sq"].mul_(4)),
    "step counter": ("b", lambda m, o: o.state[weight(m, 0)]["step"].add_(5)),
}


# Of these, what can be done to the part of a gradient that fully_shard leaves.
OF_PARTS = (
    "gradient twice",
    "gradient of a bias twice",
    "gradient half",
    "gradient zero",
    "gradient negated",
    "gradient one percent off",
    "gradient gone",
    "scaled everywhere",
    "clipped on one rank",
)


def train(kind, fault, steps, every):
    """What the guard said: tensor, axis, ranks, step and words of each fault."""
    rank = dist.get_rank()
    model = make(kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    watch = guard(model, optimizer, every=every, on_fault="warn")
    when, what = FAULTS.get(fault, ("", None))
    generator = torch.Generator().manual_seed(7 + rank)
    for step in range(steps):
        model(torch.randn(16, 8, generator=generator)).square().mean().backward()
        if kind == "hand":
            for one in model.parameters():
                dist.all_reduce(one.grad)
                one.grad /= dist.get_world_size()
        if step == 1 and (when == "every" or (when == "b" and rank == 1)):
            what(model, optimizer)
        kept = [p.detach().clone() for p in model.parameters()] if when == "s" else None
        optimizer.step()
        if step == 1 and when == "s" and rank == 1:
            with torch.no_grad():
                for p, k in zip(model.parameters(), kept, strict=True):
                    p.copy_(k)
        if step == 1 and when == "a" and rank == 1:
            what(model, optimizer)
        optimizer.zero_grad()
    watch.close()
    # Ranks along one axis tell each other; others do not hear of it.
    heard = [None] * dist.get_world_size()
    said = [[f.tensor, f.axis, f.ranks, f.step, f.what] for f in watch.faults]
    dist.all_gather_object(heard, said)
    return next((one for one in heard if one), [])


def main(rank, world, port, steps, every):
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo")
    out = {"faults": {name: train("ddp", name, 4, 1) for name in FAULTS}, "quiet": {}}
    for kind in ("ddp", "hand", *(["fsdp"] if world == 4 else [])):
        out["quiet"][kind] = len(train(kind, "", steps, every))
    if world == 4:
        out["faults"]["bit of a part"] = train("fsdp", "bit of a weight", 4, 1)
        for name in OF_PARTS:
            out["faults"][f"part: {name}"] = train("fsdp", name, 4, 1)
    if rank == 0:
        print(json.dumps(out), flush=True)
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    world, steps, every = map(int, sys.argv[1:])
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    children = []
    for rank in range(world):
        child = os.fork()
        if not child:
            try:
                main(rank, world, port, steps, every)
            finally:
                sys.stderr.flush()
                os._exit(1)
        children.append(child)
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
