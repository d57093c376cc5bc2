"""Real engines on gloo ranks beside what is derived: every message of a step, and what rests."""

import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
placet = pytest.importorskip("placet", reason="the package is not installed")

HERE = pathlib.Path(__file__).parent / "conformance"
CASES = json.loads((HERE / "cases.json").read_text())
BATCH = 2  # samples of a rank and micro-batch, of 16 tokens: as in engines.py


def audited(case, folder):
    from placet.torch import audit

    done = subprocess.run(
        [sys.executable, str(HERE / "engines.py"), case["name"], str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    model = {**CASES["model"], "tie_word_embeddings": "tied" in case["run"]}
    return audit(
        folder / "record.json",
        model=model,
        cluster=f"{case['world']}xh100-sxm",
        placement=case["placement"],
        seq=16,
        global_batch=BATCH * case.get("micro_batches", 1) * case["world"],
        micro_batch=BATCH,
        engine=case["engine"],
        precision=case.get("precision", "fp32"),
        clip=case.get("clip"),
    )


@pytest.mark.parametrize("case", CASES["cases"], ids=[case["name"] for case in CASES["cases"]])
def test_agrees_with_what_is_derived(case, tmp_path):
    found = audited(case, tmp_path)
    # A difference that is known is said by its calls: [collective, dtype, bytes, derived, run].
    differences = [
        [one["collective"], one["dtype"], one["payload_bytes"], one["derived"], one["run"]]
        for one in found.differences
    ]
    assert differences == case.get("differs", []), found.text()
    rests = {one["state"]: one["run"] - one["derived"] for one in found.rest}
    assert rests == {"parameters": 0, "gradients": 0, "optimizer": 0} | case.get("rests", {})
