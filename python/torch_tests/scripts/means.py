"""Replicas by hand: means of losses, gradients summed and divided by the ranks."""

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
half = [dist.new_group(list(range(at, at + 2))) for at in range(0, world - 1, 2)] or [None]
torch.manual_seed(0)
model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader():
    loss = loss_of(model(words), labels)
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
