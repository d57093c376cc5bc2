"""The notebooks run from top to bottom. Cells with a tag need a package that may be missing: plot
(matplotlib), torch."""

import json
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).parent.parent / "notebooks"
NEEDS = {"plot": "matplotlib", "torch": "torch"}


def has(package):
    import importlib.util

    return importlib.util.find_spec(package) is not None


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.ipynb")))
def test_runs(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    document = json.loads((FOLDER / f"{name}.ipynb").read_text())
    assert document["nbformat"] == 4
    names = {"__name__": "__main__"}
    ran = 0
    for number, cell in enumerate(document["cells"]):
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] != "code" or not all(has(NEEDS[tag]) for tag in tags):
            continue
        assert not cell["outputs"], "notebooks are kept without outputs"
        source = "".join(cell["source"])
        exec(compile(source, f"{name}.ipynb, cell {number}", "exec"), names)
        ran += 1
    assert ran >= 3
