"""What the package adds to the documents: attributes, errors, models, tables."""

import json
import signal
import subprocess
import sys
import threading

import pytest

import placet

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
}


class Config:
    def to_dict(self):
        return dict(CONFIG)


def test_attributes_have_plain_values():
    found = placet.derive("llama-3.1-8b", cluster="h100-sxm:1", placement="dp=8:zero3")
    assert found.good and found.fits
    assert found.peak_bytes == found.to_dict()["memory"]["peak_bytes"] > 10**9
    assert found.memory.classes[0].devices == 8
    assert found["training"]["sequence"] == found.training.sequence
    with pytest.raises(AttributeError, match="it has schema"):
        found.nothing


def test_a_changed_document_leaves_the_result_alone():
    found = placet.model("gpt2")
    found.to_dict()["parameters"]["total"] = 0
    assert found.parameters.total == 124439808


def test_wrong_input_has_parts():
    with pytest.raises(placet.InputError) as caught:
        placet.derive("gtp2", placement="dp=8")
    assert caught.value.value == "gtp2"
    assert caught.value.nearest == "gpt2"
    assert "did you mean 'gpt2'" in str(caught.value)
    with pytest.raises(placet.InputError, match="--seq"):
        placet.derive("gpt2", placement="dp=8:ddp", seq="4kk")
    with pytest.raises(placet.InputError, match="no folder|not a folder"):
        placet.Catalogue(data="no/such/folder")


def test_models_of_every_kind(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    counts = [
        placet.model(what).parameters.total
        for what in (CONFIG, Config(), placet.Model(CONFIG), tmp_path, str(tmp_path))
    ]
    # Two blocks of 4 x 64 x 64 and 3 x 64 x 128 weights and 2 norms of 64; embedding, head, a norm.
    by_hand = 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 100 * 64 + 64
    assert counts == [by_hand] * 5
    with pytest.raises(TypeError, match="not int"):
        placet.Model(8)


def test_words_that_are_said_win_over_a_job():
    job = placet.Job(model="gpt2", placement="dp=8:ddp", seq=128)
    assert placet.derive(job=job, seq=256).training.sequence == 256
    assert placet.derive(job=job).training.sequence == 128


def test_tables():
    found = placet.compare("gpt2", placement=["dp=4:ddp", "dp=4:zero3"])
    assert [row["placement"] for row in found.rows()] == ["dp=4:ddp", "dp=4:zero3"]
    terms = found.derivations[1].rows("memory")
    assert {"class"} <= set(terms[0])
    assert sum(1 for row in found.derivations[1].rows("communication")) > 0
    with pytest.raises(ValueError, match="is no table"):
        found.rows("nothing")


def test_pages_quote_what_they_show():
    page = placet.Verdict({"equivalent": False, "findings": [{"what": "<b>"}]})._repr_html_()
    assert "&lt;b&gt;" in page and "<td><b>" not in page


def test_verdicts_are_true_or_false():
    assert placet.check("gpt2", placement="dp=2:ddp")
    broken = placet.check(
        "gpt2", placement="dp=2:ddp", fault="rescale(all_reduce, phase=reduce, by=1/dp)"
    )
    assert not broken and broken.findings


def test_progress_is_told_and_may_end_the_search():
    words = {"cluster": "h100-sxm:1", "seq": 512, "global_batch": 64}
    told = []
    assert placet.plan("gpt2", **words, progress=told.append).exact
    assert told and {"space", "visited", "bounded", "text"} <= set(told[0])

    def fail(_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        placet.plan("gpt2", **words, progress=fail)


def test_an_interrupt_gives_the_best_so_far():
    told = []

    def interrupt(progress):
        if not told:
            signal.raise_signal(signal.SIGINT)
        told.append(progress)

    found = placet.plan("llama-3.1-70b", cluster="h100-sxm:8", seq=8192, progress=interrupt)
    assert told and not found.exact
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert placet.plan("gpt2", cluster="2xh100-sxm", seq=128, global_batch=4).exact


TITAN = """[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 4096
[parallelism]
data_parallel_shard_degree = 4
tensor_parallel_degree = 2
pipeline_parallel_degre = 1
"""


def test_configurations_are_read_as_texts_and_as_files(tmp_path):
    found = placet.import_({"train.toml": TITAN})
    assert found
    assert found.dialects == ["torchtitan@2026.02"]
    assert found.words()["model"] == "llama-3.1-8b"
    assert found.words()["seq"] == "4096"
    # 4 x 2 devices, of which tensors take 2
    assert placet.derive(**found.words()).devices == 8
    (tmp_path / "train.toml").write_text(TITAN)
    assert placet.import_(tmp_path / "train.toml").job == found.job
    assert len(found.ledger) == 7  # a line for each key
    missing = placet.import_({"ds.json": '{"zero_optimization": {"stage": 3}}'}, world_size=8)
    assert not missing
    assert "--model" in [one.flag.split()[0] for one in missing.missing]


def test_configurations_are_linted_and_mended():
    found = placet.lint([{"train.toml": TITAN}])
    assert found  # a key that is passed over is no error
    assert [one.code for one in found.findings] == ["PL001"]
    assert found.findings[0].line == 10
    mended = placet.lint({"train.toml": TITAN}, fix=True)
    assert mended.findings == []
    assert mended.mended_texts() == {
        "train.toml": TITAN.replace("degre =", "degree ="),
    }
    with pytest.raises(placet.InputError) as error:
        placet.lint({"train.toml": "[training\n"})
    assert "train.toml" in error.value.where


def test_jobs_are_exported():
    words = dict(cluster="h100-sxm:1", placement="dp=8:fsdp", seq=4096, global_batch=64)
    found = placet.export("llama-3.1-8b", to="torchtitan", **words)
    assert found
    assert any("seq_len = 4096" in text for text in found.texts().values())
    over = placet.export(to="torchtitan", from_={"train.toml": TITAN}, seq=8192)
    assert TITAN.replace("4096", "8192") in over.texts().values()


def test_threads_share_a_catalogue():
    expected = placet.derive("gpt2", placement="dp=8:zero1").to_dict()
    shared = placet.Catalogue()
    found = []

    def ask():
        found.append(placet.derive("gpt2", placement="dp=8:zero1", catalogue=shared).to_dict())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_ones_own_data_and_forgetting(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    own = placet.Catalogue(data=tmp_path)
    sheet = {
        "schema": "placet.model-file/1",
        "name": "mine",
        "source": "a test",
        "date": "2026-11-24",
        "config": CONFIG,
    }
    (folder / "mine.json").write_text(json.dumps(sheet))
    first = placet.model("mine", catalogue=own).layers
    sheet["config"] = {**CONFIG, "num_hidden_layers": 3}
    (folder / "mine.json").write_text(json.dumps(sheet))
    assert first == placet.model("mine", catalogue=own).layers == 2
    own.forget()
    assert placet.model("mine", catalogue=own).layers == 3


def test_the_import_is_light():
    code = "import sys, placet; print([m for m in sys.modules if m in sys.argv[1:]])"
    heavy = ["torch", "pandas", "polars", "matplotlib", "numpy"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
