"""A scaled loss, whose gradients are unscaled before they are clipped."""

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Decoder())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for words, labels in loader():
    with torch.autocast("cpu", torch.float16):
        loss = loss_of(model(words), labels)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
