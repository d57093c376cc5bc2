"""What runs leave behind, beside what is derived; without PyTorch."""

import json
import os
import pickle

import pytest

from placet import InputError
from placet.torch._audit import compare, read

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


class Hostile:
    def __reduce__(self):
        return (os.system, ("exit 1",))


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


@pytest.mark.parametrize(
    "data", [b"", b"[1", b"{}", b'{"traceEvents": 3}', b'{"entries": [1]}', pickle.dumps(Hostile())]
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
