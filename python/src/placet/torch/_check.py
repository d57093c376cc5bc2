"""`python -m placet.torch check`: whether a script's training on N ranks is that of one device."""

from __future__ import annotations

import os

from .._errors import InputError
from ._judge import Judge, Verdict
from ._session import Options


def _refuse(where: str, value: object, problem: str, allowed: str) -> None:
    raise InputError(
        {
            "message": f"{where}: '{value}' {problem}; expected {allowed}",
            "where": where,
            "value": str(value),
            "problem": problem,
            "allowed": allowed,
            "nearest": "",
        }
    )


def check(options: Options) -> Verdict:
    """Runs the script as one device and as so many ranks, and compares every entry after every
    update. Throws InputError where the script cannot be run as one device."""
    if not os.path.isfile(options.script):
        _refuse("SCRIPT", options.script, "is no file", "a Python script that trains")
    if not 1 <= options.world <= 64:
        _refuse("--world", options.world, "is not possible", "from 1 to 64 ranks")
    if options.steps < 1:
        _refuse("--steps", options.steps, "is not possible", "at least 1")
    if options.data_parallel and options.world % options.data_parallel:
        _refuse(
            "--data-parallel",
            options.data_parallel,
            f"does not divide {options.world}",
            "how many ranks have samples of their own",
        )
    import torch.distributed.fsdp  # noqa: F401  before ranks are made, so that each has it

    from ._ranks import run_all

    reference, ranks, stuck = run_all(options)
    if reference.get("error"):
        last = reference["error"].strip().splitlines()[-1]
        log = reference.get("log", "").strip()
        _refuse(
            "SCRIPT",
            options.script,
            f"cannot be run on one device ({last})",
            "a script that takes its ranks from the environment, or --reference-args"
            + (f"; it said: {log[-400:]}" if log else ""),
        )
    if not reference["updates"]:
        _refuse(
            "SCRIPT",
            options.script,
            "makes no update",
            "a script in which a torch.optim optimizer makes at least one step",
        )
    return Judge(options, reference, ranks, stuck).verdict()
