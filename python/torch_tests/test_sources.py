"""Whatever a real run leaves tells the same, and tells of a fault in what it sends."""

import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("placet", reason="the package is not installed")

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "conformance"))
from table import CASES, job_of  # noqa: E402

SOURCES = ("record.json", "chrome.json", "execution.json", "flight.pickle")


@pytest.fixture(scope="module", params=["right", "hook"])
def left(request, tmp_path_factory):
    if request.param == "hook" and torch.version.cuda is None:
        pytest.skip("DDP has the bf16 hook only where PyTorch has CUDA and NCCL")
    folder = tmp_path_factory.mktemp(request.param)
    command = [sys.executable, str(HERE / "scripts" / "left_behind.py"), str(folder), request.param]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return request.param, folder


@pytest.mark.parametrize("source", SOURCES)
def test_tells_what_was_sent(left, source):
    from placet.torch import audit

    kind, folder = left
    found = audit(folder / source, **job_of(CASES["ddp 2"]))
    if kind == "right":
        assert found.agrees and found.agreed == 1, found.text()
    else:
        assert not found.agrees
        causes = [one["cause"] for one in found.differences]
        assert any("another format" in cause for cause in causes), found.text()


def test_fits_an_engine_to_a_run(left, tmp_path):
    """A hook is systematic: the overlay adds what is sent in bf16, and takes the rest out."""
    import placet
    from placet.torch._fit import fit

    kind, folder = left
    before, after, written = fit(folder / "record.json", tmp_path, **job_of(CASES["ddp 2"]))
    assert before.agrees == (kind == "right")
    assert len(after.differences) <= len(before.differences)
    catalogue = placet.Catalogue(data=tmp_path)
    again = placet.derive(catalogue=catalogue, **job_of(CASES["ddp 2"]))
    assert again.to_dict()["engine"] == placet.derive(**job_of(CASES["ddp 2"])).to_dict()["engine"]
    assert pathlib.Path(written).parent.parent == tmp_path
