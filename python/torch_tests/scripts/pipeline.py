"""pipeline.py [gpipe | 1f1b | interleaved]: stages of torch.distributed.pipelining, each with
micro-batches of a fourth of the samples."""

import sys

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
whole = Decoder(blocks=4)


class Tail(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.head = whole.norm, whole.head

    def forward(self, x):
        return self.head(self.norm(x))


layers = [whole.embedding, *whole.blocks, Tail()]
name = sys.argv[1] if len(sys.argv) > 1 else "gpipe"
stages = world * (2 if name == "interleaved" else 1)
each = -(-len(layers) // stages)
parts = [nn.Sequential(*layers[at * each : (at + 1) * each]) for at in range(rank, stages, world)]
model = nn.ModuleList(parts)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
if world > 1:
    made = [
        PipelineStage(one, rank + at * world, stages, torch.device("cpu"))
        for at, one in enumerate(parts)
    ]
    kinds = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}
    kind = kinds[name]
    schedule = kind(made if name == "interleaved" else made[0], 4, loss_fn=loss_of)
for words, labels in loader(8, 0, 1):
    if world == 1:
        x = words
        for one in parts:
            x = one(x)
        loss_of(x, labels).backward()
    elif rank == 0:
        schedule.step(words)
    elif rank == world - 1:
        schedule.step(target=labels)
    else:
        schedule.step()
    optimizer.step()
    optimizer.zero_grad()
