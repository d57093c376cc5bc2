"""Real engines on gloo ranks beside what is derived: every message of a step, and what rests.

With PLACET_RECORDS=FOLDER what the ranks leave is kept there, by versions of the packages and by
what the case and its drivers say, and a case whose records are there is not run again: what is
derived is compared with them in seconds.
"""

import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
placet = pytest.importorskip("placet", reason="the package is not installed")

HERE = pathlib.Path(__file__).parent / "conformance"
sys.path.insert(0, str(HERE))
from table import CASES, job_of, looked_at  # noqa: E402

NEEDS = {
    "hugging_face": "transformers",
    "accelerate": "accelerate",
    "deepspeed": "deepspeed",
    "megatron": "megatron.core",
    "titan": "torchtitan.trainer",
}


@pytest.fixture(scope="session")
def engines():
    """Runs cases one after the other: PyTorch is imported once."""
    with subprocess.Popen(
        [sys.executable, str(HERE / "engines.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:

        def run(name, folder):
            print(f"{name}\t{folder}", file=server.stdin, flush=True)
            return int(server.stdout.readline())

        yield run
        server.stdin.close()


VERSIONED = ("torch", "transformers", "accelerate", "deepspeed", "torchtitan", "megatron-core")


def run_of(case):
    """All that a run depends on: the case, but for what is expected, and the drivers."""
    told = {key: case[key] for key in case if key not in ("differs", "rests", "why", "older")}
    drivers = [one.read_text() for one in sorted(HERE.glob("*.py"))]
    return json.dumps([told, *drivers], sort_keys=True)


def kept_folder(name):
    """Where the records of a case are kept, or None. Written by runs of these packages alone."""
    root = os.environ.get("PLACET_RECORDS")
    if not root:
        return None
    found = importlib.metadata.distributions()
    there = {one.metadata["Name"].lower(): one.version for one in found}
    versions = [f"{one}-{there[one]}" for one in VERSIONED if one in there]
    what = hashlib.sha256(run_of(CASES[name]).encode()).hexdigest()[:12]
    return pathlib.Path(root) / " ".join(versions) / f"{name.replace('/', '_')} {what}"


def recorded(name, engines, tmp_path):
    """The folder with the records of a case, run if there are none."""
    kept = kept_folder(name)
    if kept is None:
        assert engines(name, tmp_path) == 0
        return tmp_path
    if not (kept / "record.json").exists():
        assert engines(name, tmp_path) == 0
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(tmp_path, kept)
    return kept


def audited(case, folder):
    """Of each class of devices, what differs and by how much what rests does."""
    from placet.torch import audit

    derivation = placet.derive(**job_of(case)).to_dict()
    for rank, at in looked_at(case, derivation):
        record = folder / (f"record.{rank}.json" if rank else "record.json")
        yield audit(record, derivation=derivation, device_class=at)


def numbers_of(version):
    return [int(one) for one in re.findall(r"\d+", version)[:3]]


def release(package):
    return numbers_of(importlib.metadata.version(package))


def expected(case):
    """What a case says of differences; of an older release of a package it may say others."""
    older = case.get("older")
    if older is None:
        return case
    return older if release(older["package"]) < numbers_of(older["before"]) else case


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_what_is_derived(name, engines, tmp_path):
    case = CASES[name]
    for key, package in NEEDS.items():
        if case.get(key) is not None:
            why = f"{package} is not installed, or not for this PyTorch"
            pytest.importorskip(package, reason=why, exc_type=ImportError)
    if case.get("titan") is not None and release("torch") < [2, 14]:
        pytest.skip("torchtitan 0.3 calls what PyTorch has since 2.14")
    if "bf16" in case.get("with", {}).get("hook", "") and torch.version.cuda is None:
        pytest.skip("DDP has the bf16 hook only where PyTorch has CUDA and NCCL")
    folder = recorded(name, engines, tmp_path)
    keys = ("collective", "dtype", "phase", "payload_bytes", "derived", "run")
    differs, rests = [], {}
    audits = list(audited(case, folder))
    assert audits, "what is derived says why it has no classes of devices"
    for found in audits:
        differs += [[one[key] for key in keys] for one in found.differences]
        for one in found.rest:
            if one["run"] != one["derived"]:
                rests[one["state"]] = one["run"] - one["derived"]
    said = expected(case)
    assert differs == said.get("differs", []), audits[-1].text()
    assert rests == said.get("rests", {}), audits[-1].text()
    assert "why" in said or not (differs or rests)
