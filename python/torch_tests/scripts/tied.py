"""tied.py [fsdp]: embedding and output are one matrix."""

import sys

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = Decoder()
model.head.weight = model.embedding.weight
if "fsdp" in sys.argv:
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
else:
    model = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader():
    loss_of(model(words), labels).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
