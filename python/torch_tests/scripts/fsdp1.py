import torch
import torch.distributed as dist
from tiny import Block, Decoder, loader, loss_of
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

dist.init_process_group("gloo")
torch.manual_seed(0)
model = FullyShardedDataParallel(
    Decoder(),
    auto_wrap_policy=ModuleWrapPolicy({Block}),
    device_id=torch.device("cpu"),
    use_orig_params=True,
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader():
    loss_of(model(words), labels).backward()
    model.clip_grad_norm_(1.0)
    optimizer.step()
    optimizer.zero_grad()
