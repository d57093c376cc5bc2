"""with_deepspeed.py STAGE"""

import os
import sys

os.environ.setdefault("DS_ACCELERATOR", "cpu")
import deepspeed  # noqa: E402
import torch  # noqa: E402
from tiny import Decoder, loader, loss_of  # noqa: E402

deepspeed.init_distributed("gloo")
torch.manual_seed(0)
model = Decoder()
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    config={
        "train_micro_batch_size_per_gpu": 4,
        "zero_optimization": {"stage": int(sys.argv[1])},
        "zero_allow_untested_optimizer": True,
        "gradient_clipping": 1.0,
    },
)
for words, labels in loader():
    loss = loss_of(engine(words), labels)
    engine.backward(loss)
    engine.step()
