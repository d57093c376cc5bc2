"""Micro-batches without a reduction but the last: ddp_accumulate.py MICRO_BATCHES BATCH."""

import contextlib
import sys

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch.nn.parallel import DistributedDataParallel

micro_batches, batch = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Decoder())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for at, (words, labels) in enumerate(loader(batch)):
    last = (at + 1) % micro_batches == 0
    with contextlib.nullcontext() if last else model.no_sync():
        loss = loss_of(model(words), labels) / micro_batches
        loss.backward()
    if last:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
