"""left_behind.py FOLDER [hook]: two ranks train with DistributedDataParallel, and leave a record, a
Chrome trace, an execution trace and a Flight Recorder dump; with a hook gradients go in bf16."""

import os
import pathlib
import socket
import sys

import torch
import torch.distributed as dist
from torch import profiler

folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "conformance"))
from decoder import Decoder, loss_of  # noqa: E402
from table import model_of  # noqa: E402

from placet.torch import Recorder  # noqa: E402


def train():
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(Decoder(model_of({})))
    if "hook" in sys.argv:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    words = torch.randint(0, 96, (2, 17))

    def step():
        loss_of(model(words[:, :-1]), words[:, 1:].contiguous()).backward()
        optimizer.step()
        optimizer.zero_grad()

    with Recorder() as recorder:
        for _ in range(3):
            step()
    recorder.save(folder / "record.json")
    observer = profiler.ExecutionTraceObserver().register_callback(str(folder / "execution.json"))
    kinds = [profiler.ProfilerActivity.CPU]
    with profiler.profile(
        activities=kinds, record_shapes=True, execution_trace_observer=observer
    ) as made:
        for _ in range(3):
            step()
            made.step()
    made.export_chrome_trace(str(folder / "chrome.json"))
    (folder / "flight.pickle").write_bytes(torch._C._distributed_c10d._dump_fr_trace())


def main(rank, port):
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1")
    os.environ.update(MASTER_PORT=str(port), TORCH_FR_BUFFER_SIZE="2000")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if rank == 0:
        train()
    else:
        global folder
        folder = folder / "other"
        folder.mkdir()
        train()
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    children = []
    for rank in range(2):
        child = os.fork()
        if not child:
            try:
                main(rank, port)
            finally:
                os._exit(1)
        children.append(child)
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
