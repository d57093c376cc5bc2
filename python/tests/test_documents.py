"""Results hold the documents that the program prints with --json."""

import json
import os
import pathlib
import subprocess

import pytest

import placet

PROGRAM = os.environ.get("PLACET_PROGRAM", "")
needs_program = pytest.mark.skipif(
    not pathlib.Path(PROGRAM).is_file(), reason="PLACET_PROGRAM names no built program"
)


def printed(*words: str) -> dict:
    """What the program prints, with the package's own data."""
    data = pathlib.Path(placet.__file__).parent / "data"
    done = subprocess.run(
        [PROGRAM, *words, "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PLACET_DATA": str(data)},
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@needs_program
def test_derive():
    called = placet.derive(
        "gpt2", cluster="h100-sxm:1", placement="dp=8:zero3", seq=512, global_batch=64
    )
    words = ("gpt2", "--cluster", "h100-sxm:1", "--placement", "dp=8:zero3")
    assert called.to_dict() == printed("derive", *words, "--seq", "512", "--global-batch", "64")


@needs_program
def test_compare_and_model():
    called = placet.compare("gpt2", placement=["dp=4:ddp", "tp=4:tp"])
    words = ("gpt2", "--placement", "dp=4:ddp", "--placement", "tp=4:tp")
    assert called.to_dict() == printed("compare", *words)
    assert placet.model("gpt2", lora=8).to_dict() == printed("model", "gpt2", "--lora", "8")


@needs_program
def test_simulate_lower_check_and_verify():
    words = ("gpt2", "--placement", "dp=2:zero1", "--global-batch", "4")
    job = placet.Job(model="gpt2", placement="dp=2:zero1", global_batch=4)
    for name in ("lower", "check", "verify"):
        assert getattr(placet, name)(job=job).to_dict() == printed(name, *words)
    timed = placet.simulate(job=job, cluster="2xh100-sxm")
    assert timed.to_dict() == printed("simulate", *words, "--cluster", "2xh100-sxm")


@needs_program
def test_plan():
    called = placet.plan(
        "gpt2", cluster="2xh100-sxm", seq=256, global_batch=8, max_memory=0.5, scale=[4], front=2
    ).to_dict()
    words = ("--cluster", "2xh100-sxm", "--seq", "256", "--global-batch", "8")
    more = ("--max-memory", "0.5", "--scale", "4", "--front", "2")
    expected = printed("plan", "gpt2", *words, *more)
    called.pop("seconds")
    expected.pop("seconds")
    assert called == expected


@needs_program
def test_lists():
    for kind in ("schedules", "strategies", "clusters"):
        assert placet.catalogue().list(kind).to_dict() == printed(kind)
