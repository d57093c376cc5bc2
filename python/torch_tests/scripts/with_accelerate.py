import torch
from accelerate import Accelerator
from tiny import Decoder, FullSentences, loss_of
from torch.utils.data import DataLoader

accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model, optimizer, data = accelerator.prepare(model, optimizer, DataLoader(FullSentences(), 4))
for words, labels in data:
    loss = loss_of(model(words), labels)
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
