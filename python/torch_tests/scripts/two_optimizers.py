import torch
import torch.distributed as dist
from tiny import Decoder, loader, loss_of

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = Decoder()
matrices = [one for one in model.blocks.parameters() if one.dim() == 2]
known = {id(one) for one in matrices}
others = [one for one in model.parameters() if id(one) not in known]
optimizers = [
    torch.optim.SGD(matrices, lr=1e-2, momentum=0.9),
    torch.optim.AdamW(others, lr=1e-3),
]
for words, labels in loader():
    loss_of(model(words), labels).backward()
    for parameter in [*matrices, *others]:
        dist.all_reduce(parameter.grad)
        parameter.grad /= world
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
