"""Products in bf16, weights and gradients in fp32."""

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Decoder(), gradient_as_bucket_view=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader():
    with torch.autocast("cpu", torch.bfloat16):
        loss = loss_of(model(words), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
