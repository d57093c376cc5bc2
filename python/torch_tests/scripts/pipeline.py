"""Stages of torch.distributed.pipelining, GPipe with four micro-batches."""

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

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
each = -(-len(layers) // world)
model = nn.Sequential(*layers[rank * each : (rank + 1) * each])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
if world > 1:
    stage = PipelineStage(model, rank, world, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 4, loss_fn=loss_of)
for words, labels in loader(8, 0, 1):
    if world == 1:
        loss_of(model(words), labels).backward()
    elif rank == 0:
        schedule.step(words)
    elif rank == world - 1:
        schedule.step(target=labels)
    else:
        schedule.step()
    optimizer.step()
    optimizer.zero_grad()
