"""Scripts of several engines are equal to themselves on one device, faults in them are found."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

SCRIPTS = pathlib.Path(__file__).parent / "scripts"
sys.path.insert(0, str(SCRIPTS))
from tiny import Decoder  # noqa: E402

BUGS = json.loads((SCRIPTS / "bugs.json").read_text())["bugs"]


def run(folder, script, world, data_parallel=0, reference=None, arguments=()):
    command = [sys.executable, "-m", "placet.torch", "check", script, "--world", str(world)]
    command += ["--json", "--timeout", "100"]
    if data_parallel:
        command += ["--data-parallel", str(data_parallel)]
    if reference is not None:
        command += ["--reference-args", reference]
    done = subprocess.run(
        [*command, "--", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["equivalent"] == (done.returncode == 0)
    return verdict


def told_apart():
    """Entries of the decoder in ddp.py: embedding and head 24 * 16 each, last norm 2 * 16, and in
    each of 2 blocks 2 norms of 16, 4 matrices of 16 * 16 and 3 of 32 * 16; but not those that are
    drawn twice, since an entry is known by the number that it begins with."""
    torch.manual_seed(0)
    drawn = torch.cat([p.detach().flatten() for p in Decoder().parameters() if p.dim() > 1])
    _, times = drawn.unique(return_counts=True)
    whole = 2 * 384 + 32 + 2 * (32 + 4 * 256 + 3 * 512)
    return whole - int(times[times > 1].sum())


# script, ranks, ranks with samples of their own (0: all), arguments, those of the reference
RIGHT = [
    ("ddp.py", 2, 0, [], None),
    ("ddp_accumulate.py", 2, 0, ["2", "4"], "1 8"),
    ("divided_batch.py", 2, 0, [], None),
    ("tokens.py", 3, 0, [], None),
    ("means.py", 4, 0, [], None),
    ("zero1.py", 2, 0, [], None),
    ("hand_zero1.py", 3, 0, [], None),
    ("hand_tp.py", 2, 1, [], None),
    ("fsdp1.py", 2, 0, [], None),
    ("fsdp2.py", 2, 0, [], None),
    ("fsdp2.py", 4, 0, ["hsdp", "mixed", "keep"], None),
    ("tp.py", 2, 1, [], None),
    ("tp.py", 2, 1, ["sp", "loss"], None),
    ("tp.py", 4, 2, ["sp", "loss", "fsdp"], None),
    ("pipeline.py", 3, 1, [], None),
    ("pipeline.py", 3, 1, ["1f1b"], None),
    ("pipeline.py", 3, 1, ["interleaved"], None),
    ("tied.py", 2, 0, [], None),
    ("tied.py", 2, 0, ["fsdp"], None),
    ("autocast.py", 2, 0, [], None),
    ("scaler.py", 2, 0, [], None),
    ("fsdp2_accumulate.py", 2, 0, ["2", "4"], "1 8"),
    ("fsdp2_tokens.py", 3, 0, [], None),
    ("experts.py", 2, 0, [], None),
    ("hand_pp.py", 2, 1, [], None),
    ("hand_cp.py", 2, 1, [], None),
]


@pytest.mark.parametrize("script, world, ways, arguments, reference", RIGHT)
def test_is_the_training_of_one_device(script, world, ways, arguments, reference):
    verdict = run(SCRIPTS, script, world, ways, reference, arguments)
    assert verdict["equivalent"], verdict["findings"]
    assert verdict["steps"] == 2 and verdict["unknown"] == {}
    if script == "ddp.py":
        assert verdict["entries"] == 2 * 2 * told_apart()  # ranks, steps


def test_each_of_two_optimizers_updates_what_it_has():
    verdict = run(SCRIPTS, "two_optimizers.py", 2)
    assert verdict["equivalent"], verdict["findings"]
    assert verdict["steps"] == 4  # two of each


def test_accelerate_is_the_training_of_one_device():
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    assert run(SCRIPTS, "with_accelerate.py", 2)["equivalent"]


# What DeepSpeed keeps for buckets of 5e8 elements takes no memory here.
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_deepspeed_is_the_training_of_one_device(stage):
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed")
    assert run(SCRIPTS, "with_deepspeed.py", 2, arguments=[str(stage)])["equivalent"]


def planted(folder, bug):
    shutil.copy(SCRIPTS / "tiny.py", folder)
    text = (SCRIPTS / bug["script"]).read_text()
    for take, put in ((bug["take"], bug["put"]), *([bug["also"]] if "also" in bug else [])):
        assert text.count(take) == 1, take
        text = text.replace(take, put)
    (folder / bug["script"]).write_text(text)


@pytest.mark.parametrize("bug", BUGS, ids=[bug["name"] for bug in BUGS])
def test_finds(bug, tmp_path):
    planted(tmp_path, bug)
    verdict = run(
        tmp_path,
        bug["script"],
        bug["world"],
        bug.get("data_parallel", 0),
        bug.get("reference"),
        bug.get("arguments", []),
    )
    assert not verdict["equivalent"]
    first = verdict["findings"][0]
    if bug["line"] is None:
        return
    name, _, number = first["at"].partition(":")
    assert name == bug.get("line_in", bug["script"]), first
    line = (tmp_path / name).read_text().splitlines()[int(number) - 1]
    assert any(text in line for text in bug["line"]), (first, line)


def test_refuses_a_script_that_cannot_run_alone(tmp_path):
    (tmp_path / "alone.py").write_text("raise RuntimeError('two ranks at least')\n")
    command = [sys.executable, "-m", "placet.torch", "check", "alone.py", "--world", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "two ranks at least" in done.stderr
