"""Losses summed over tokens and divided by the count of all ranks, gradients summed by hand."""

import torch
import torch.distributed as dist
from tiny import Decoder, Sentences, loader
from torch.nn import functional as F

dist.init_process_group("gloo")
torch.manual_seed(0)
model = Decoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for words, labels in loader(dataset=Sentences()):
    count = (labels != -100).sum()
    dist.all_reduce(count)
    logits = model(words).flatten(0, 1)
    loss = F.cross_entropy(logits, labels.flatten(), reduction="sum") / count
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
