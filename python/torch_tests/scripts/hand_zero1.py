"""Optimizer states divided by hand: every rank updates its part, then all parts are gathered."""

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = Decoder()
parameters = list(model.parameters())
count = sum(one.numel() for one in parameters)
each = -(-count // world)
flat = torch.zeros(each * world)
flat[:count] = torch.cat([one.detach().reshape(-1) for one in parameters])
own = torch.nn.Parameter(flat[rank * each : (rank + 1) * each].clone())
optimizer = torch.optim.AdamW([own], lr=1e-3)
for words, labels in loader():
    loss_of(model(words), labels).backward()
    gradient = torch.zeros(each * world)
    gradient[:count] = torch.cat([one.grad.reshape(-1) for one in parameters])
    own.grad = torch.zeros(each)
    dist.reduce_scatter_tensor(own.grad, gradient)
    own.grad /= world
    square = own.grad.square().sum()
    dist.all_reduce(square)
    own.grad *= torch.clamp(1.0 / (square.sqrt() + 1e-6), max=1.0)
    optimizer.step()
    dist.all_gather_into_tensor(flat, own.detach())
    begin = 0
    for one in parameters:
        one.data.copy_(flat[begin : begin + one.numel()].view_as(one))
        begin += one.numel()
        one.grad = None
