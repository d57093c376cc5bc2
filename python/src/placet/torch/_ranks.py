"""Starts the ranks of a checked run: processes of this one, which has read PyTorch already."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
from dataclasses import replace
from typing import Any

import torch

from ._engines import clear_shared_memory
from ._session import Options, replicas, run_rank

# What a rank saw that was ended, as `Session.result` has it.
_NOTHING: dict[str, Any] = {
    "updates": [],
    "backwards": [],
    "step_places": [],
    "messages": [],
    "unknown": {},
    "operators": 0,
    "optimizers": {},
    "said": {},
    "loads": [],
    "values": torch.zeros(0, dtype=torch.int64),
}


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _start(
    options: Options, rank: int, world: int, port: int, is_reference: bool, folder: str
) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        name = "reference" if is_reference else f"rank{rank}"
        log = os.open(os.path.join(folder, f"{name}.log"), os.O_CREAT | os.O_WRONLY, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        run_rank(options, rank, world, port, is_reference, os.path.join(folder, f"{name}.pt"))
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(children: dict[int, str], timeout: float) -> list[str]:
    """Names of those that had to be ended."""
    until = time.monotonic() + timeout
    left = dict(children)
    while left and time.monotonic() < until:
        for child in list(left):
            if os.waitpid(child, os.WNOHANG)[0]:
                del left[child]
        time.sleep(0.02)
    for child in left:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return list(left.values())


def run_all(options: Options) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """What the reference saw, what each rank saw, and who did not come to an end."""
    with tempfile.TemporaryDirectory() as folder:
        alone, port = _free_port(), _free_port()
        children = {_start(options, 0, 1, alone, True, folder): "reference"}
        for rank in range(options.world):
            children[_start(options, rank, options.world, port, False, folder)] = f"rank {rank}"
        stuck = _wait(children, options.timeout)

        def load(name: str) -> dict[str, Any]:
            path = os.path.join(folder, f"{name}.pt")
            found: dict[str, Any] = {**_NOTHING, "error": "it did not come to an end"}
            if os.path.exists(path):
                found = torch.load(path, weights_only=False)
            with open(os.path.join(folder, f"{name}.log"), errors="replace") as file:
                found["log"] = file.read()[-4000:]
            return found

        ranks = [load(f"rank{rank}") for rank in range(options.world)]
        reference = load("reference")
        if _divides_batches(options, reference, ranks[0]):
            as_it_is = replace(options, scaled_loaders=False)
            again = {_start(as_it_is, 0, 1, alone, True, folder): "reference"}
            stuck += _wait(again, options.timeout)
            reference = load("reference")
        for one in (alone, port):
            clear_shared_memory(one)
        return reference, ranks, stuck


def _divides_batches(options: Options, reference: dict[str, Any], rank: dict[str, Any]) -> bool:
    """Whether the script itself asks its data loaders for as many times fewer samples on N ranks:
    its one device takes all of them already."""
    if options.reference_arguments is not None:  # they say what the one device takes
        return False
    ways, whole, own = replicas(options), reference["loads"], rank["loads"]
    return ways > 1 and len(own) > 0 and whole == [ways * one for one in own]
