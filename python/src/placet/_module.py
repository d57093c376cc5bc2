"""The configuration of a decoder from its modules: names and shapes of parameters, on any device,
the meta device among them. Reads no values and imports no PyTorch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ._errors import InputError

# What the parts of a block, and those around blocks, are called in well-known models.
_BLOCK = {
    "query": ("q_proj", "wq", "q", "query", "q_lin"),
    "key": ("k_proj", "wk", "k", "key", "k_lin"),
    "value": ("v_proj", "wv", "v", "value", "v_lin"),
    "output": ("o_proj", "wo", "o", "out_proj", "out"),
    "gate": ("gate_proj", "w1", "gate"),
    "up": ("up_proj", "w3", "up"),
    "down": ("down_proj", "w2", "down"),
}
_ENDS = {
    "embedding": ("embed_tokens", "tok_embeddings", "embedding", "embeddings", "wte"),
    "head": ("lm_head", "output", "head"),
    "norm": ("norm", "ln_f", "final_layernorm", "final_norm"),
}
_HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head", "heads")
_HEAD_SIZE = ("head_dim", "head_size", "size")
_HOLDERS = ("", "args", "config", "params", "model_args")
_NUMBERED = re.compile(r"^(?P<list>.*?)\.?(?P<at>\d+)\.(?P<rest>.+)$")


def _refuse(what: str, value: str, allowed: str) -> InputError:
    return InputError(
        {
            "message": f"model: {what} '{value}'; expected {allowed}",
            "where": "model",
            "value": value,
            "problem": what,
            "allowed": allowed,
            "nearest": "",
        }
    )


def is_module(what: object) -> bool:
    return callable(getattr(what, "named_parameters", None)) and hasattr(what, "modules")


def _shapes(module: Any) -> dict[str, tuple[int, ...]]:
    named = module.named_parameters(remove_duplicate=False)
    return {name: tuple(int(n) for n in one.shape) for name, one in named}


def _role(name: str, roles: Mapping[str, tuple[str, ...]]) -> str | None:
    """What a parameter is, by the innermost module that has one of the names."""
    for word in reversed(name.split(".")[:-1]):
        for role, words in roles.items():
            if word in words:
                return role
    return None


def _split(
    shapes: Mapping[str, tuple[int, ...]],
) -> tuple[list[dict[str, tuple[int, ...]]], dict[str, tuple[int, ...]]]:
    """Parameters of each block of the list that has most of them, and those of none."""
    found = {name: _NUMBERED.match(name) for name in shapes}
    lists = Counter(match["list"] for match in found.values() if match)
    if not lists:
        raise _refuse("has no list of blocks among", ", ".join(list(shapes)[:4]), "a decoder")
    chosen = lists.most_common(1)[0][0]
    blocks: dict[int, dict[str, tuple[int, ...]]] = {}
    ends: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        match = found[name]
        if match and match["list"] == chosen:
            blocks.setdefault(int(match["at"]), {})[match["rest"]] = shape
        else:
            ends[name] = shape
    return [blocks[at] for at in sorted(blocks)], ends


def _number(module: Any, words: tuple[str, ...]) -> int | None:
    """A whole number that the module, one inside of it or what it was made from calls so."""

    def held(one: Any) -> Iterator[int]:
        for holder in _HOLDERS:
            inner = getattr(one, holder, None) if holder else one
            for word in words:
                value = getattr(inner, word, None)
                if isinstance(value, int) and not isinstance(value, bool):
                    yield value

    for one in module.modules():
        for value in held(one):
            return value
    return None


def _place(name: str, role: str, names: dict[str, str]) -> None:
    """Notes which parameter has a role; one alone may."""
    if role in names:
        raise _refuse(
            f"has two parameters for the {role},", f"{names[role]}' and '{name}", "one of each"
        )
    names[role] = name


def _ends_of(ends: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    out: dict[str, tuple[int, ...]] = {}
    names: dict[str, str] = {}
    for name, shape in ends.items():
        role = _role(name, _ENDS)
        if role is None or not name.endswith("weight"):
            raise _refuse("has a parameter that is not understood,", name, "parts of a decoder")
        _place(name, role, names)
        out[role] = shape
    if "embedding" not in out or "norm" not in out:
        raise _refuse("has no embedding or last norm among", ", ".join(ends), "a whole decoder")
    return out


def _block_of(block: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, tuple[int, ...]], set[str]]:
    """Shapes of the matrices by role, and roles that have a bias."""
    out: dict[str, tuple[int, ...]] = {}
    biased: set[str] = set()
    names: dict[str, str] = {}
    norms = 0
    for name, shape in block.items():
        role = _role(name, _BLOCK)
        if role is not None and name.endswith("bias"):
            biased.add(role)
        elif role is not None and len(shape) == 2:
            _place(name, role, names)
            out[role] = shape
        elif len(shape) == 1 and name.endswith("weight"):
            norms += 1
        else:
            raise _refuse("has a parameter that is not understood,", name, "parts of a decoder")
    if set(out) != set(_BLOCK) or norms != 2:
        said = ", ".join(block)
        raise _refuse(
            "has blocks that are not understood,", said, "attention, a gated MLP, two norms"
        )
    return out, biased


def config_of(module: Any) -> dict[str, Any]:
    """A configuration as a file of transformers has it. Throws InputError with the parameter that
    is not understood. Modules do not say their activation: `hidden_act` is assumed to be silu."""
    shapes = _shapes(module)
    blocks, around = _split(shapes)
    if any(one != blocks[0] for one in blocks):
        raise _refuse("has blocks of several shapes", type(module).__name__, "equal blocks")
    ends = _ends_of(around)
    block, biased = _block_of(blocks[0])
    width = ends["embedding"][1]
    rows = block["query"][0]
    heads, size = _number(module, _HEADS), _number(module, _HEAD_SIZE)
    if heads is None and size is None:
        words = ", ".join(_HEADS + _HEAD_SIZE)
        raise _refuse("does not say its heads,", type(module).__name__, f"one of {words}")
    key_rows = block["key"][0]
    if heads is not None:
        size = rows // heads if heads > 0 and rows % heads == 0 else 0
    if not size or size < 0 or rows % size or key_rows % size:
        said = f"{rows} rows of queries, {key_rows} of keys, {heads or 'unknown'} heads"
        raise _refuse("has heads that do not divide its matrices,", said, "whole heads")
    biases = {"query", "key", "value", "output"} & biased
    if biases not in (set(), {"query", "key", "value", "output"}) or biased - biases:
        raise _refuse("has biases on", ", ".join(sorted(biased)), "all of attention, or none")
    head = next((n for n in around if _role(n, _ENDS) == "head"), None)
    embedding = next(n for n in around if _role(n, _ENDS) == "embedding")
    by_name = dict(module.named_parameters(remove_duplicate=False))
    tied = head is not None and by_name[head] is by_name[embedding]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": block["gate"][0],
        "num_hidden_layers": len(blocks),
        "num_attention_heads": rows // size,
        "num_key_value_heads": block["key"][0] // size,
        "head_dim": size,
        "vocab_size": ends["embedding"][0],
        "attention_bias": bool(biases),
        "tie_word_embeddings": tied,
        "hidden_act": "silu",
    }
