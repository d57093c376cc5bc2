"""What runs leave behind, beside what is derived; without PyTorch."""

import gzip
import json
import os
import pickle

import pytest

from placet import InputError
from placet.torch.__main__ import main
from placet.torch._audit import compare
from placet.torch._sources import last_step, read

# 16 numbers of bf16 are 32 bytes; 4 * 4 of fp32 are 64.
TRACE = {
    "traceEvents": [
        {
            "name": "record_param_comms",
            "ph": "X",
            "ts": 1,
            "args": {
                "Collective name": "_allgather_base",
                "dtype": "BFloat16",
                "In msg nelems": 8,
                "Out msg nelems": 16,
                "Group size": 2,
            },
        }
    ]
}
DUMP = {
    "pg_config": {"0": {"name": "0", "ranks": "[0, 1]"}},
    "entries": [
        {
            "profiling_name": "nccl:all_reduce",
            "input_sizes": [[4, 4]],
            "input_dtypes": ["Float"],
            "process_group": ["0", "default"],
        }
    ],
}


# Of a step: all_reduce of 64 bytes, all_gather whose output is 128, over two ranks, twice; the
# first line of the log belongs to no step.
NCCL = "\n".join(
    f"host:{process}:9 [0] NCCL INFO {name}: opCount {at:x} sendbuff 0x1 recvbuff 0x2 "
    f"count {count} datatype {dtype} op 0 root 0 comm 0x5 [nranks=2] stream 0x3"
    for process in (7, 8)
    for at, (name, count, dtype) in enumerate(
        [("Broadcast", 4, 7), ("AllReduce", 16, 7), ("AllGather", 32, 9)]
        + [("AllReduce", 16, 7), ("AllGather", 32, 9)]
    )
)
EXECUTION = {
    "schema": "1.1.1-chakra.0.0.4",
    "nodes": [
        {
            "name": "c10d::_reduce_scatter_base_",
            "inputs": {
                "shapes": [[4], [8], [], []],
                "types": ["Tensor(c10::BFloat16)", "Tensor(c10::BFloat16)", "Object", "Object"],
            },
        },
        {
            "name": "c10d::allreduce_",
            "inputs": {
                "shapes": [[[4, 4], [2]]],
                "types": ["GenericList[Tensor(float),Tensor(float)]"],
            },
        },
    ],
}
# 100 bytes rest; at the end 100 are left of 100 + 40 + 30, of which 70 at once.
SNAPSHOT = {
    "segments": [{"device": 0, "allocated_size": 100}],
    "device_traces": [
        [
            {"action": "alloc", "size": 40},
            {"action": "free_requested", "size": 40},
            {"action": "alloc", "size": 30},
            {"action": "free_completed", "size": 40},
            {"action": "free_completed", "size": 30},
        ]
    ],
}
MEGATRON = (
    " iteration 2/ 10 | elapsed time per iteration (ms): 9.0 |\n"
    "[Rank 0] (after 2 iterations) memory (MB) | allocated: 1.0 | max allocated: 2.5 | reserved: 4"
)
TORCHTITAN = "step:  1  loss: 8.1  memory:  0.50GiB(1%)\nstep: 10  loss: 7.1  memory:  0.75GiB(1%)"


class Hostile:
    def __reduce__(self):
        return (os.system, ("exit 1",))


def shared():
    """2^60 lists, as 60 that each hold the next one twice."""
    one = [[1]]
    for _ in range(60):
        one = [one, one]
    return one


def terms(found):
    return [
        (one["collective"], one["group"], one["dtype"], one["payload_bytes"])
        for one in found["messages"]
    ]


def test_reads_traces_and_dumps(tmp_path):
    (tmp_path / "trace.json").write_text(json.dumps(TRACE))
    assert terms(read(tmp_path / "trace.json")) == [("all_gather", 2, "bf16", 32)]
    (tmp_path / "dump").write_bytes(pickle.dumps(DUMP))
    assert terms(read(tmp_path / "dump")) == [("all_reduce", 2, "fp32", 64)]


def test_reads_logs_of_nccl(tmp_path):
    (tmp_path / "log").write_text(NCCL)
    expected = [("all_reduce", 2, "fp32", 64), ("all_gather", 2, "bf16", 128)]
    assert terms(read(tmp_path / "log")) == expected
    assert terms(read(tmp_path / "log", rank=1)) == expected
    with pytest.raises(InputError, match="process 2 is not in the log"):
        read(tmp_path / "log", rank=2)


def test_reads_execution_traces(tmp_path):
    (tmp_path / "trace.json").write_text(json.dumps(EXECUTION))
    expected = [("reduce_scatter", 0, "bf16", 16), ("all_reduce", 0, "fp32", 72)]
    assert terms(read(tmp_path / "trace.json")) == expected


def test_reads_peaks(tmp_path):
    (tmp_path / "snapshot").write_bytes(pickle.dumps(SNAPSHOT))
    (tmp_path / "megatron").write_text(MEGATRON)
    (tmp_path / "torchtitan").write_text(TORCHTITAN)
    peaks = [read(tmp_path / n)["peak_bytes"] for n in ("snapshot", "megatron", "torchtitan")]
    assert peaks == [170, 2621440, 805306368]  # 2.5 MiB, 3/4 GiB


def test_finds_the_last_step():
    messages = [
        {"collective": one, "group": 2, "dtype": "fp32", "payload_bytes": 4} for one in "sabbabb"
    ]
    assert [one["collective"] for one in last_step(messages)] == ["a", "b", "b"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[1",
        b"{}",
        b'{"traceEvents": 3}',
        b'{"entries": [1]}',
        b'{"nodes": [{}]}',
        b"memory",
        b"[" * 100_000,
        b'{"entries": [{"profiling_name": "nccl:all_reduce", "input_sizes": '
        + b"[" * 900
        + b"]" * 900
        + b"}]}",
        b'{"entries": [{"profiling_name": "nccl:all_reduce", "input_sizes": [[Infinity]]}]}',
        pickle.dumps(Hostile()),
        pickle.dumps({**DUMP, "entries": [{**DUMP["entries"][0], "input_sizes": shared()}]}),
    ],
)
def test_refuses_what_it_cannot_read(data, tmp_path):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(InputError):
        read(tmp_path / "file")


def derivation(count, dtype="fp32"):
    term = {"collective": "all_reduce", "group": 2, "dtype": dtype, "payload_bytes": 64}
    return {
        "communication": {"classes": [{"terms": [{**term, "count": count}]}]},
        "memory": {"classes": [{"rest_bytes": {"parameters": 8, "gradients": 8, "optimizer": 16}}]},
    }


@pytest.mark.parametrize(
    "change, cause",
    [
        ({}, ""),
        ({"group": 4}, "another group"),
        ({"dtype": "bf16", "payload_bytes": 32}, "another format"),
        ({"collective": "reduce_scatter"}, "another collective"),
    ],
)
def test_tells_differences_by_cause(change, cause):
    message = {"collective": "all_reduce", "group": 2, "dtype": "fp32", "payload_bytes": 64}
    found = compare(derivation(2), {"messages": [message, {**message, **change}]})
    if not cause:
        assert found.agrees and found.agreed == 1 and found.calls == 2
        return
    assert not found.agrees
    [extra] = [one for one in found.differences if not one["derived"]]
    assert cause in extra["cause"]


def test_tells_bytes_at_rest():
    message = {"collective": "all_reduce", "group": 2, "dtype": "fp32", "payload_bytes": 64}
    run = {"messages": [message], "rest_bytes": {"parameters": 8, "gradients": 4, "optimizer": 16}}
    found = compare(derivation(1), run)
    assert found.agreed == 1 and not found.agrees
    assert [one["run"] - one["derived"] for one in found.rest] == [0, -4, 0]


@pytest.mark.parametrize("broken", [lambda d: d[:-9], lambda d: d[:20] + b"xxxx" + d[24:]])
def test_refuses_broken_gzip(broken, tmp_path):
    (tmp_path / "trace.json.gz").write_bytes(broken(gzip.compress(json.dumps(TRACE).encode())))
    with pytest.raises(InputError, match="unpacked|read"):
        read(tmp_path / "trace.json.gz")


def test_says_what_a_log_lacks(tmp_path):
    (tmp_path / "log").write_text("host:7:9 [0] NCCL INFO Bootstrap : Using eth0")
    with pytest.raises(InputError) as refused:
        read(tmp_path / "log")
    assert str(refused.value) == (
        "log of NCCL: has no collective; expected one written with NCCL_DEBUG=INFO "
        "NCCL_DEBUG_SUBSYS=INIT,COLL"
    )


# Of 4 x 4 numbers.
@pytest.mark.parametrize(
    ("dtype", "name", "size"), [("Short", "int16", 2), ("ComplexDouble", "complex128", 16)]
)
def test_knows_the_size_of_types(dtype, name, size, tmp_path):
    entry = {**DUMP["entries"][0], "input_dtypes": [dtype]}
    (tmp_path / "dump").write_bytes(pickle.dumps({**DUMP, "entries": [entry]}))
    assert terms(read(tmp_path / "dump")) == [("all_reduce", 2, name, 16 * size)]


def test_refuses_types_of_no_known_size(tmp_path):
    entry = {**DUMP["entries"][0], "input_dtypes": ["QInt4x2"]}
    (tmp_path / "dump").write_bytes(pickle.dumps({**DUMP, "entries": [entry]}))
    with pytest.raises(InputError, match="'QInt4x2' is of no size that is known"):
        read(tmp_path / "dump")


def test_a_fit_takes_no_step(capsys):
    words = ["audit", "record.json", "--fit", "folder", "--step", "1", "--placement", "dp=2:ddp"]
    assert main(words) == 2
    assert "--step: is not for --fit" in capsys.readouterr().err


# Two ranks, states whole (ddp): 4 + 4 + 8 bytes of fp32 for each of 124,439,808 parameters of gpt2
# are more than those of zero1, which leaves 4 of the 8.
def test_names_states_that_are_whole(tmp_path):
    import placet
    from placet.torch._audit import audit

    job = {
        "model": "gpt2",
        "cluster": "2xh100-sxm",
        "engine": "placet",
        "precision": "fp32",
        "seq": 128,
        "global_batch": 2,
    }
    whole = placet.derive(placement="dp=2:ddp", **job).to_dict()["memory"]["classes"][0]["bytes"]
    mebibytes = (whole["total"] - whole.get("overhead", 0)) / 2**20
    (tmp_path / "log").write_text(
        f"[Rank 0] (after 2 iterations) memory (MB) | allocated: 1 | max allocated: {mebibytes:.1f}"
    )
    assert audit(tmp_path / "log", placement="dp=2:ddp", **job).agrees
    found = audit(tmp_path / "log", placement="dp=2:zero1", **job)
    assert not found.agrees and "as in ddp" in found.peak["cause"]


LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "vocab_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
# Of the model: blocks of 36,992 numbers, embedding and head of 6,144, a norm of 64. fully_shard of
# the root alone beside the blocks makes one group of the ends, 12,352 numbers, which stays whole.
ROOT = [
    ("all_gather", 12352, "forward"),
    *[("all_gather", 36992, "forward")] * 2,
    *[("all_gather", 36992, "backward"), ("reduce_scatter", 36992, "backward")] * 2,
    ("reduce_scatter", 12352, "backward"),
]


def test_fits_an_engine_to_what_is_systematic(tmp_path):
    import placet
    from placet.torch import fit

    def message(kind, count, phase):
        return {
            "collective": kind,
            "op": "sum",
            "ranks": [0, 1],
            "group": 2,
            "dtype": "fp32",
            "count": count,
            "payload_bytes": 4 * count,
            "phase": phase,
            "place": "",
        }

    step = {
        "messages": [*(message(*one) for one in ROOT), message("all_reduce", 1, "update")],
        "rest_bytes": {},
    }
    once = {**step, "messages": [*step["messages"], message("broadcast", 5, "update")]}
    record = {"schema": "placet.torch.record/1", "rank": 0, "world": 2, "after": []}
    (tmp_path / "record.json").write_text(json.dumps({**record, "steps": [once, step, step]}))
    job = {
        "model": LLAMA,
        "cluster": "2xh100-sxm",
        "seq": 16,
        "global_batch": 4,
        "micro_batch": 2,
        "precision": "fp32",
        "placement": "dp=2:fsdp",
        "engine": "pytorch",
    }
    packed = gzip.compress((tmp_path / "record.json").read_bytes())
    (tmp_path / "record.json.gz").write_bytes(packed)
    before, after, written = fit(tmp_path / "record.json.gz", tmp_path / "data", **job)
    assert not before.agrees and after.agrees, after.text()
    overlay = json.loads(open(written).read())
    assert overlay["joins_ends"]["value"] is True
    assert [one["payload_elements"] for one in overlay["messages"]] == [1]
    catalogue = placet.Catalogue(data=tmp_path / "data")
    again = placet.derive(catalogue=catalogue, **job)
    assert any(
        row["count"] == 1 and row["payload_bytes"] == 4 for row in again.rows("communication")
    )
    # With that folder's data nothing is left to fit.
    given = fit(tmp_path / "record.json", tmp_path / "more", data=[str(tmp_path / "data")], **job)
    assert given[0].agrees
