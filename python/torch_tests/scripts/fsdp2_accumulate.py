"""Shards whose gradients wait for the last micro-batch: fsdp2_accumulate.py MICRO_BATCHES BATCH."""

import sys

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch.distributed.fsdp import fully_shard

micro_batches, batch = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo")
torch.manual_seed(0)
model = Decoder()
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for at, (words, labels) in enumerate(loader(batch)):
    last = (at + 1) % micro_batches == 0
    model.set_requires_gradient_sync(last)
    loss = loss_of(model(words), labels) / micro_batches
    loss.backward()
    if last:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
