"""What of a run's differences is systematic, as facts of the engine: a file that lies over its own.

Facts that change messages are tried one at a time, on top of each other, and the one is kept that
leaves the fewest calls unexplained, until none helps. Messages that then are left on one side only,
in every step, become messages of the engine, or are taken out of it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._audit import Audit, compare
from ._sources import read, steps_in_record, wrong

_GRAINS = ("unit", "everything", "tensor")
_SWITCHES = (
    "joins_ends",
    "joins_inputs",
    "defers_scatter",
    "replicas_follow_scatter",
    "last_unit_stays_gathered",
    "last_block_stays_gathered",
    "shared_gradients_whole",
    "layer_cut_defers_sharding",
    "later_stages_use_one_bucket",
    "sends_boundary_in_parts",
    "fuses_loss_sums",
)
_CHOICES = {
    "gradient_grain": _GRAINS,
    "gather_grain": _GRAINS,
    "update_grain": _GRAINS,
    "shared_gradient_grain": _GRAINS,
    "grain": ("element", "row", "unit", "everything", "tensor"),
    "scatter_path": ("reduce_scatter", "all_reduce_and_slice", "reduce_scatter_if_gathered"),
    "bucket_bytes": tuple(size << 20 for size in (1, 5, 25, 40, 100, 200, 500)),
}
_MOST_FACTS = 8


def _candidates() -> Iterator[tuple[str, Any]]:
    for key in _SWITCHES:
        yield from ((key, True), (key, False))
    for key, values in _CHOICES.items():
        yield from ((key, value) for value in values)


class _Engine:
    """The job's engine with facts over it, in a folder of data of its own."""

    def __init__(
        self, job: Mapping[str, Any], class_at: int, source: str, data: Sequence[str] = ()
    ) -> None:
        import placet

        self.job, self.class_at, self.source = job, class_at, source
        self.data = [*data]  # folders of the user's, the strongest last
        self.given = placet.Catalogue(data=self.data)
        said = placet.derive(catalogue=self.given, **job).to_dict()["engine"]
        bare, _, options = str(said).partition("+")
        self.name, _, self.version = bare.partition("@")
        self.inherits = bare + (f"+{options}" if options else "")

    def file(
        self, facts: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        out: dict[str, Any] = {
            "schema": "placet.engine/1",
            "name": self.name,
            "version": self.version,
            "date": self._date(),
            "title": f"{self.inherits} as a run was seen",
            "inherits": self.inherits,
        }
        for key, value in facts.items():
            out[key] = {"value": value, "source": self.source}
        if messages:
            out["messages"] = [{**one, "source": self.source} for one in messages]
        return out

    @staticmethod
    def _date() -> str:
        import datetime

        return datetime.date.today().isoformat()

    def derived(
        self, facts: Mapping[str, Any], messages: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, Any]:
        import placet

        if not facts and not messages:
            return dict(placet.derive(catalogue=self.given, **self.job).to_dict())
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, facts, messages)
            catalogue = placet.Catalogue(data=[*self.data, folder])
            said = {**self.job, "engine": f"{self.name}@{self.version}"}
            return dict(placet.derive(catalogue=catalogue, **said).to_dict())

    def write(
        self, folder: str, facts: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
    ) -> str:
        os.makedirs(os.path.join(folder, "engines"), exist_ok=True)
        path = os.path.join(folder, "engines", f"{self.name}@{self.version}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.file(facts, messages), file, indent=2)
            file.write("\n")
        return path


def _unexplained(found: Audit) -> int:
    calls = sum(abs(one["derived"] - one["run"]) for one in found.differences)
    return calls + sum(one["derived"] != one["run"] for one in found.rest)


def _facts(engine: _Engine, run: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that, one on top of the other, leave ever fewer calls unexplained."""
    import placet

    facts: dict[str, Any] = {}
    left = _unexplained(compare(engine.derived(facts), run, engine.class_at))
    while left and len(facts) < _MOST_FACTS:
        best: tuple[int, dict[str, Any]] | None = None
        for key, value in _candidates():
            tried = {**facts, key: value}
            if key == "bucket_bytes":
                tried["gradient_grain"] = "bucket"
            try:
                now = _unexplained(compare(engine.derived(tried), run, engine.class_at))
            except placet.InputError:
                continue
            if now < left and (best is None or now < best[0]):
                best = (now, tried)
        if best is None:
            break
        left, facts = best
    return facts


def _over(engine: _Engine, group: int) -> str | None:
    """The word for a group of so many devices: all, or the axes with one cut."""
    degrees: Counter[str] = Counter()
    devices = 1
    for axis in engine.derived({})["mesh"]:
        devices *= int(axis["degree"])
        degrees[axis["cut"]] = max(1, degrees[axis["cut"]]) * int(axis["degree"])
    if group == devices:
        return "all"
    return next((cut for cut, degree in degrees.items() if degree == group), None)


def _messages(
    engine: _Engine, facts: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """What every step has and the derivation lacks, or the other way round."""
    derivation = engine.derived(facts)
    audits = [compare(derivation, run, engine.class_at) for run in runs]
    own = {
        (t["collective"], int(t["payload_bytes"])): t["what"]
        for t in derivation["communication"]["classes"][engine.class_at]["terms"]
        if t.get("source")
    }
    out: list[dict[str, Any]] = []
    for one in audits[-1].differences:
        if any(one not in [{**d, "place": one["place"]} for d in a.differences] for a in audits):
            continue  # not in every step
        if not one["run"]:
            what = own.get((one["collective"], one["payload_bytes"]))
            if what is not None:
                out.append({"what": what, "remove": True})
        elif not one["derived"] and one["group"]:
            over = _over(engine, one["group"])
            if over is not None:
                out.append(_entry(one, over, runs[-1]))
    return out


def _entry(one: Mapping[str, Any], over: str, run: Mapping[str, Any]) -> dict[str, Any]:
    sent = next(
        m
        for m in run["messages"]
        if (m["collective"], m["payload_bytes"], m["dtype"])
        == (one["collective"], one["payload_bytes"], one["dtype"])
    )
    made = {
        "what": f"{one['collective']} of {sent['count']} numbers",
        "collective": one["collective"],
        "dtype": one["dtype"],
        "phase": "reduce" if one["phase"] == "backward" else one["phase"] or "update",
        "over": over,
        "payload_elements": sent["count"],
        "count": one["run"],
    }
    if one["collective"] in ("all_reduce", "reduce_scatter"):
        made["op"] = "sum"
    return made


def fit(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    rank: int = 0,
    device_class: int = 0,
    data: Sequence[str] = (),
    **job: Any,
) -> tuple[Audit, Audit, str]:
    """Writes FOLDER/engines/NAME@VERSION.json, which lies over the engine's file (`--data FOLDER`),
    and gives the audits without and with it, and its path. `data` are folders of your own over the
    shipped data, the strongest last; the folder that is written lies over them. Of a record all steps but the first two
    have to agree on what is written."""
    runs = _steps(path, rank)
    if not runs[-1]["messages"]:
        raise wrong("--fit", path, "the source has no messages", "a source of messages")
    text = f"measured: {os.path.basename(os.fspath(path))}, {len(runs)} steps"
    engine = _Engine(job, device_class, text, data)
    before = compare(engine.derived({}), runs[-1], device_class)
    facts = _facts(engine, runs[-1])
    messages = _messages(engine, facts, runs)
    written = engine.write(os.fspath(folder), facts, messages)
    after = compare(engine.derived(facts, messages), runs[-1], device_class)
    return before, after, written


def _steps(path: str | os.PathLike[str], rank: int) -> list[dict[str, Any]]:
    last = read(path, rank=rank)
    if last["source"] != "record":
        return [last]
    count = steps_in_record(path)
    return [read(path, step) for step in range(min(2, count - 1), count)]
