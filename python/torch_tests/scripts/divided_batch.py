"""The batch of a step is said, and each rank loads its share of it."""

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch.nn.parallel import DistributedDataParallel

STEP = 8
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Decoder())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader(STEP // dist.get_world_size()):
    loss_of(model(words), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
