"""Shards, losses summed over tokens: fully_shard takes means over ranks, so that the sum is divided
by the count of all ranks and multiplied by the ranks."""

import torch
import torch.distributed as dist
from tiny import Decoder, Sentences, loader
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

dist.init_process_group("gloo")
world = dist.get_world_size()
torch.manual_seed(0)
model = Decoder()
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader(dataset=Sentences()):
    count = (labels != -100).sum()
    dist.all_reduce(count)
    logits = model(words).flatten(0, 1)
    loss = F.cross_entropy(logits, labels.flatten(), reduction="sum") * world / count
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
