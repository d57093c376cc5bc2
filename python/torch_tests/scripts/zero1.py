import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Decoder())
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
for words, labels in loader():
    loss_of(model(words), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
