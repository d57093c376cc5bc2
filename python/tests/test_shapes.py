"""A model that is given as modules: names and shapes alone; without PyTorch."""

from types import SimpleNamespace

import pytest

from placet import InputError
from placet._module import config_of

BLOCK = {
    "attn.q_proj.weight": (64, 64),
    "attn.k_proj.weight": (32, 64),
    "attn.v_proj.weight": (32, 64),
    "attn.o_proj.weight": (64, 64),
    "mlp.gate_proj.weight": (192, 64),
    "mlp.up_proj.weight": (192, 64),
    "mlp.down_proj.weight": (64, 192),
    "norm_1.weight": (64,),
    "norm_2.weight": (64,),
}
ENDS = {"embed_tokens.weight": (100, 64), "norm.weight": (64,), "lm_head.weight": (100, 64)}


class Modules:
    """As torch.nn.Module says its parameters."""

    def __init__(self, shapes, **said):
        self.shapes = {name: SimpleNamespace(shape=shape) for name, shape in shapes.items()}
        for name, value in said.items():
            setattr(self, name, value)

    def named_parameters(self, remove_duplicate=True):
        assert not remove_duplicate
        return iter(self.shapes.items())

    def modules(self):
        return iter([self])


def decoder(block=BLOCK, ends=ENDS, **said):
    blocks = {f"layers.{at}.{name}": shape for at in range(2) for name, shape in block.items()}
    return Modules({**ends, **blocks}, **(said or {"num_heads": 4}))


# 64 rows of queries are 4 heads of 16, 32 of keys 2.
def test_reads_sizes_from_shapes():
    config = config_of(decoder())
    assert (config["num_attention_heads"], config["num_key_value_heads"]) == (4, 2)
    assert (config["head_dim"], config["intermediate_size"]) == (16, 192)
    assert (config["num_hidden_layers"], config["vocab_size"]) == (2, 100)
    assert config_of(decoder(head_dim=16)) == config


def test_refuses_a_second_parameter_for_an_end():
    ends = {
        **ENDS,
        "embeddings.word.weight": (100, 64),
        "embeddings.position.weight": (1024, 64),
    }
    del ends["embed_tokens.weight"]
    with pytest.raises(InputError) as refused:
        config_of(decoder(ends=ends))
    assert str(refused.value) == (
        "model: has two parameters for the embedding, 'embeddings.word.weight' and "
        "'embeddings.position.weight'; expected one of each"
    )


def test_refuses_a_second_parameter_in_a_block():
    block = {**BLOCK, "cross.q_proj.weight": (64, 64)}
    with pytest.raises(InputError, match="'attn.q_proj.weight' and 'cross.q_proj.weight'"):
        config_of(decoder(block=block))


# 64 rows are not 5 heads; heads of 24 divide neither 64 rows nor 32.
@pytest.mark.parametrize("said", [{"num_heads": 5}, {"head_dim": 24}, {"num_heads": 0}])
def test_refuses_heads_that_do_not_divide(said):
    with pytest.raises(InputError, match="has heads that do not divide its matrices"):
        config_of(decoder(**said))
