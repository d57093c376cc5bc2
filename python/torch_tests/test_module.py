"""A model from its modules on the meta device."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
placet = pytest.importorskip("placet", reason="the package is not installed")

sys.path.insert(0, str(pathlib.Path(__file__).parent / "conformance"))
from decoder import Decoder  # noqa: E402
from table import model_of  # noqa: E402

SAID = model_of({"model": {"hidden_size": 1024, "vocab_size": 32000, "num_hidden_layers": 12}})


def made(**change):
    with torch.device("meta"):
        return Decoder({**SAID, **change})


@pytest.mark.parametrize("tied", [False, True])
def test_is_read_from_a_module(tied):
    module = made(tie_word_embeddings=tied)
    assert all(one.is_meta for one in module.parameters())
    sheet = placet.model(module)
    assert sheet.to_dict()["parameters"]["total"] == sum(p.numel() for p in module.parameters())
    assert placet.Model(module).word["num_key_value_heads"] == 2
    there = placet.derive(module, placement="dp=8:zero3", seq=64, global_batch=8)
    assert (
        there.peak_bytes
        == placet.derive(
            {**SAID, "tie_word_embeddings": tied}, placement="dp=8:zero3", seq=64, global_batch=8
        ).peak_bytes
    )


def test_says_what_it_does_not_understand():
    module = made()
    module.layers[3].mlp.gate_proj = torch.nn.Linear(1024, 7, device="meta")
    with pytest.raises(placet.InputError, match="blocks of several shapes"):
        placet.Model(module)
    module = made()
    module.extra = torch.nn.Linear(2, 2, device="meta")
    with pytest.raises(placet.InputError, match="extra.weight"):
        placet.Model(module)


def test_is_read_from_a_configuration_of_transformers():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.LlamaConfig(**SAID)
    with torch.device("meta"):
        module = transformers.LlamaForCausalLM(config)
    assert placet.model(module).to_dict() == placet.model(config).to_dict()
