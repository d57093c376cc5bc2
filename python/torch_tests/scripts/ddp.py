import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Decoder())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader():
    loss = loss_of(model(words), labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
