"""Two stages by hand, micro-batches one after the other; embedding and output are one matrix, of
which either stage has a copy."""

import torch
import torch.distributed as dist
from tiny import LENGTH, WIDTH, Decoder, loader, loss_of

MICRO_BATCHES, SAMPLES = 4, 2
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
first, last = rank == 0, rank == world - 1
torch.manual_seed(0)
model = Decoder(blocks=4)
model.head.weight = model.embedding.weight
blocks = model.blocks[rank * 4 // world : (rank + 1) * 4 // world]
parameters = list(blocks.parameters())
parameters += [model.embedding.weight]
if last:
    parameters += list(model.norm.parameters())
optimizer = torch.optim.AdamW(parameters, lr=1e-3)
for words, labels in loader(MICRO_BATCHES * SAMPLES, 0, 1):
    kept = []
    for part, marks in zip(words.split(SAMPLES), labels.split(SAMPLES), strict=True):
        if first:
            x = entry = model.embedding(part)
        else:
            entry = torch.empty(SAMPLES, LENGTH, WIDTH)
            dist.recv(entry, rank - 1)
            x = entry.requires_grad_()
        for block in blocks:
            x = block(x)
        if last:
            x = loss_of(model.head(model.norm(x)), marks) / MICRO_BATCHES
        else:
            dist.send(x.detach(), rank + 1)
        kept.append((entry, x))
    for entry, x in kept:
        if last:
            x.backward()
        else:
            gradient = torch.empty_like(x)
            dist.recv(gradient, rank + 1)
            x.backward(gradient)
        if not first:
            dist.send(entry.grad, rank - 1)
    if world > 1:
        dist.all_reduce(model.embedding.weight.grad)
    optimizer.step()
    optimizer.zero_grad()
