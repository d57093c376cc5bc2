"""fsdp2.py [mixed] [keep] [hsdp]"""

import os
import sys

import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

dist.init_process_group("gloo")
world = int(os.environ["WORLD_SIZE"])
if "hsdp" in sys.argv and world > 1:
    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("rep", "shard"))
else:
    mesh = init_device_mesh("cpu", (world,))
torch.manual_seed(0)
model = Decoder()
words = {"mesh": mesh, "reshard_after_forward": "keep" not in sys.argv}
if "mixed" in sys.argv:
    words["mp_policy"] = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
for block in model.blocks:
    fully_shard(block, **words)
fully_shard(model, **words)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader():
    loss_of(model(words), labels).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
