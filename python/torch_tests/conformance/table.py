"""The cases of cases.json, one for each product of what a row lists under `for`."""

import copy
import importlib.metadata
import itertools
import json
import pathlib
import re

SEQUENCE, BATCH = 16, 2  # tokens of a sample, samples of a rank and micro-batch

_TABLE = json.loads((pathlib.Path(__file__).parent / "cases.json").read_text())


def _filled(value, words):
    """A copy with each "{key}" replaced, by the value itself where the text is nothing else."""
    if isinstance(value, dict):
        return {key: _filled(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, words) for one in value]
    if not isinstance(value, str):
        return value
    for key, word in words.items():
        if value == f"{{{key}}}":
            return word
        value = value.replace(f"{{{key}}}", str(word))
    return value


def _cases():
    for row in _TABLE["cases"]:
        family = _TABLE["families"].get(row.get("family", ""), {})
        base = {**copy.deepcopy(family), **row}
        base["job"] = {**family.get("job", {}), **row.get("job", {})}
        ways = base.pop("for", {})
        for values in itertools.product(*ways.values()):
            words = dict(zip(ways, values, strict=True))
            case = _filled(base, words)
            case = _filled(case, {"world": case["world"]})
            case["name"] = " ".join(case["name"].split())
            yield case


CASES = {case["name"]: case for case in _cases()}


def model_of(case):
    """The model's configuration, as a file of transformers says it."""
    return {**_TABLE["model"], **case.get("model", {})}


# Engines whose versions are those of a package.
_PACKAGES = {
    "pytorch": "torch",
    "pytorch-ddp": "torch",
    "pytorch-fsdp1": "torch",
    "deepspeed": "deepspeed",
}


def _installed(package):
    return importlib.metadata.version(package).partition("+")[0]


def engine_of(text):
    """The engine of the packages that are installed: its version, and options that differ by the
    release of a library."""
    name, *options = text.split("+")
    if name in _PACKAGES:
        name += "@" + _installed(_PACKAGES[name])
    older = "transformers" in options and _installed("transformers").startswith("4.")
    return "+".join([name, *(f"{o}-4" if older and o == "transformers" else o for o in options)])


def job_of(case):
    """The job to derive: what placet.derive takes. Samples of a step are those of all ranks that
    have samples of their own, over all micro-batches."""
    mesh = case.get("mesh") or {"dp": case["world"]}
    ways = 1
    for name, degree in mesh.items():
        ways *= degree if name in ("dp", "rep") else 1
    return {
        "model": model_of(case),
        "cluster": f"{case['world']}xh100-sxm",
        "seq": SEQUENCE,
        "global_batch": BATCH * case.get("micro_batches", 1) * ways,
        "micro_batch": BATCH,
        "precision": "fp32",
        **case["job"],
        "engine": engine_of(case["job"]["engine"]),
    }


def looked_at(case, derivation):
    """Of each class of devices its first rank and its position among the classes: stages are the
    outermost axis of the mesh, ranks of a stage stand together."""
    classes = derivation["memory"]["classes"]
    each = case["world"] // (case.get("mesh") or {}).get("pp", 1)
    for at, one in enumerate(classes):
        first = re.search(r"\d+", one["class"]) if len(classes) > 1 else None
        yield int(first[0]) * each if first else 0, at
