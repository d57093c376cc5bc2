"""One function per subcommand of the program; keywords are its flags."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ._catalogue import Catalogue, Progress, catalogue as shared_catalogue
from ._job import Job, ModelLike, Word, Words, Model
from ._results import (
    Comparison,
    Derivation,
    Export,
    Import,
    Lint,
    ModelSheet,
    Plans,
    Program,
    Run,
    Timeline,
    Verdict,
)

PathLike = str | os.PathLike[str]
# A file, or texts by the names that they go by.
SourceLike = PathLike | Mapping[str, str]
SourcesLike = SourceLike | Sequence[SourceLike]


def _sources(sources: SourcesLike) -> list[Any]:
    """Names of files, and texts that are at hand, as a request document has them."""
    if isinstance(sources, (str, os.PathLike, Mapping)):
        sources = [sources]
    out: list[Any] = []
    for source in sources:
        if isinstance(source, Mapping):
            out += [{"file": name, "text": text} for name, text in source.items()]
        else:
            out.append(os.fspath(source))
    return out


def _request(subcommand: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """The request document of a call: the words of a Job, and those that were said over it."""
    request: dict[str, Any] = {"subcommand": subcommand}
    job = said.get("job")
    if isinstance(job, Job):
        request.update(job.request())
    for key, value in said.items():
        if value is None or key in ("catalogue", "progress") or isinstance(value, Job):
            continue
        if key == "model":
            value = Model(value).word
        elif key in ("sources", "from_"):
            key, value = key.rstrip("_"), _sources(value)
        elif isinstance(value, os.PathLike):
            value = os.fspath(value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            value = list(value)
        request[key.replace("_", "-")] = value
    return request


def _ask(request: Mapping[str, Any], catalogue: Catalogue | None) -> dict[str, Any]:
    return (catalogue or shared_catalogue()).call(request)


def model(
    model: ModelLike | None = None,
    *,
    job: Job | PathLike | None = None,
    seq: Word | None = None,
    freeze: str | Sequence[str] | None = None,
    ignore_key: str | Sequence[str] | None = None,
    lora: Word | None = None,
    catalogue: Catalogue | None = None,
) -> ModelSheet:
    """What is trained: every tensor, exact counts, FLOPs per token."""
    return ModelSheet(_ask(_request("model", locals()), catalogue))


def derive(
    model: ModelLike | None = None,
    *,
    job: Job | PathLike | None = None,
    cluster: str | None = None,
    placement: str | None = None,
    seq: Word | None = None,
    lengths: str | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    recompute: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    freeze: str | Sequence[str] | None = None,
    ignore_key: str | Sequence[str] | None = None,
    lora: Word | None = None,
    loss: str | None = None,
    clip: Word | None = None,
    routing: str | None = None,
    balance_loss: str | None = None,
    engine: str | None = None,
    catalogue: Catalogue | None = None,
) -> Derivation:
    """Memory per device and state, communication per axis, rules of composition."""
    return Derivation(_ask(_request("derive", locals()), catalogue))


def compare(
    model: ModelLike | None = None,
    *,
    job: Job | PathLike | None = None,
    cluster: str | None = None,
    placement: str | Sequence[str] | None = None,
    seq: Word | None = None,
    lengths: str | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    recompute: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    freeze: str | Sequence[str] | None = None,
    ignore_key: str | Sequence[str] | None = None,
    lora: Word | None = None,
    loss: str | None = None,
    clip: Word | None = None,
    routing: str | None = None,
    balance_loss: str | None = None,
    engine: str | None = None,
    catalogue: Catalogue | None = None,
) -> Comparison:
    """Several placements of one model, side by side."""
    return Comparison(_ask(_request("compare", locals()), catalogue))


def simulate(
    model: ModelLike | None = None,
    *,
    job: Job | PathLike | None = None,
    cluster: str | None = None,
    placement: str | None = None,
    seq: Word | None = None,
    lengths: str | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    recompute: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    freeze: str | Sequence[str] | None = None,
    ignore_key: str | Sequence[str] | None = None,
    lora: Word | None = None,
    loss: str | None = None,
    clip: Word | None = None,
    routing: str | None = None,
    balance_loss: str | None = None,
    engine: str | None = None,
    straggler: str | Sequence[str] | None = None,
    catalogue: Catalogue | None = None,
) -> Timeline:
    """Time of a step, throughput, and where the time goes."""
    return Timeline(_ask(_request("simulate", locals()), catalogue))


def plan(
    model: ModelLike | None = None,
    *,
    job: Job | PathLike | None = None,
    cluster: str | None = None,
    seq: Word | None = None,
    lengths: str | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    recompute: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    freeze: str | Sequence[str] | None = None,
    ignore_key: str | Sequence[str] | None = None,
    lora: Word | None = None,
    loss: str | None = None,
    clip: Word | None = None,
    routing: str | None = None,
    balance_loss: str | None = None,
    engine: str | None = None,
    goal: str | None = None,
    top: int | None = None,
    fix: str | None = None,
    require: str | Sequence[str] | None = None,
    max_memory: float | None = None,
    allow_tight: bool | None = None,
    tokens: Word | None = None,
    price: Words | None = None,
    scale: Words | None = None,
    front: int | None = None,
    front_step: float | None = None,
    goodput: float | None = None,
    progress: Progress | None = None,
    catalogue: Catalogue | None = None,
) -> Plans:
    """The best placements of a model on a cluster, and why no other is better.

    progress: called now and then with the counts of the search and a line of text. An interrupt
    (Ctrl-C) in the main thread ends the search with the best so far; `exact` is then False.
    """
    request = _request("plan", locals())
    return Plans((catalogue or shared_catalogue()).call(request, progress=progress))


def lower(
    model: ModelLike | None = None,
    *,
    job: Job | PathLike | None = None,
    cluster: str | None = None,
    placement: str | None = None,
    seq: Word | None = None,
    lengths: str | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    recompute: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    freeze: str | Sequence[str] | None = None,
    ignore_key: str | Sequence[str] | None = None,
    lora: Word | None = None,
    loss: str | None = None,
    clip: Word | None = None,
    routing: str | None = None,
    balance_loss: str | None = None,
    engine: str | None = None,
    catalogue: Catalogue | None = None,
) -> Program:
    """The step program of a job, as text."""
    return Program(_ask(_request("lower", locals()), catalogue))


def check(
    model: ModelLike | None = None,
    *,
    job: Job | PathLike | None = None,
    cluster: str | None = None,
    placement: str | None = None,
    seq: Word | None = None,
    lengths: str | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    recompute: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    freeze: str | Sequence[str] | None = None,
    ignore_key: str | Sequence[str] | None = None,
    lora: Word | None = None,
    loss: str | None = None,
    clip: Word | None = None,
    routing: str | None = None,
    balance_loss: str | None = None,
    engine: str | None = None,
    fault: str | Sequence[str] | None = None,
    accept: str | Sequence[str] | None = None,
    catalogue: Catalogue | None = None,
) -> Verdict:
    """Proves that a job, or a program file, is the training of one device."""
    return Verdict(_ask(_request("check", locals()), catalogue))


def verify(
    model: ModelLike | None = None,
    *,
    job: Job | PathLike | None = None,
    cluster: str | None = None,
    placement: str | None = None,
    seq: Word | None = None,
    lengths: str | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    recompute: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    freeze: str | Sequence[str] | None = None,
    ignore_key: str | Sequence[str] | None = None,
    lora: Word | None = None,
    loss: str | None = None,
    clip: Word | None = None,
    routing: str | None = None,
    balance_loss: str | None = None,
    engine: str | None = None,
    fault: str | Sequence[str] | None = None,
    accept: str | Sequence[str] | None = None,
    seeds: int | None = None,
    catalogue: Catalogue | None = None,
) -> Verdict:
    """Runs all ranks of a small mesh of the same shape over a finite field."""
    return Verdict(_ask(_request("verify", locals()), catalogue))


def run(
    model: ModelLike | None = None,
    *,
    job: Job | PathLike | None = None,
    cluster: str | None = None,
    placement: str | None = None,
    seq: Word | None = None,
    lengths: str | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    recompute: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    freeze: str | Sequence[str] | None = None,
    ignore_key: str | Sequence[str] | None = None,
    lora: Word | None = None,
    loss: str | None = None,
    clip: Word | None = None,
    routing: str | None = None,
    balance_loss: str | None = None,
    engine: str | None = None,
    fault: str | Sequence[str] | None = None,
    accept: str | Sequence[str] | None = None,
    steps: int | None = None,
    mode: str | None = None,
    meaning: str | Sequence[str] | None = None,
    watch: bool | None = None,
    times: bool | None = None,
    catalogue: Catalogue | None = None,
) -> Run:
    """Executes the step program on real numbers and compares with one device."""
    return Run(_ask(_request("run", locals()), catalogue))


def import_(
    sources: SourcesLike,
    *,
    dialect: str | None = None,
    model: ModelLike | None = None,
    cluster: str | None = None,
    engine: str | None = None,
    placement: str | None = None,
    world_size: Word | None = None,
    seq: Word | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    set: str | Sequence[str] | None = None,
    strict: bool | None = None,
    catalogue: Catalogue | None = None,
) -> Import:
    """An engine's configuration as a job: files, or texts by name ({"train.toml": text})."""
    return Import(_ask(_request("import", locals()), catalogue))


def lint(
    sources: SourcesLike,
    *,
    dialect: str | None = None,
    model: ModelLike | None = None,
    cluster: str | None = None,
    engine: str | None = None,
    placement: str | None = None,
    world_size: Word | None = None,
    seq: Word | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    set: str | Sequence[str] | None = None,
    fix: bool | None = None,
    catalogue: Catalogue | None = None,
) -> Lint:
    """What is wrong in an engine's configuration: files, or texts by name.

    fix: texts are mended, and given back by `mended_texts()`; files are left as they are.
    """
    return Lint(_ask(_request("lint", locals()), catalogue))


def export(
    model: ModelLike | None = None,
    *,
    to: str,
    job: Job | PathLike | None = None,
    from_: SourcesLike | None = None,
    dialect: str | None = None,
    world_size: Word | None = None,
    cluster: str | None = None,
    placement: str | None = None,
    seq: Word | None = None,
    lengths: str | None = None,
    global_batch: Word | None = None,
    micro_batch: Word | None = None,
    recompute: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    freeze: str | Sequence[str] | None = None,
    lora: Word | None = None,
    loss: str | None = None,
    clip: Word | None = None,
    routing: str | None = None,
    balance_loss: str | None = None,
    engine: str | None = None,
    catalogue: Catalogue | None = None,
) -> Export:
    """A job as an engine's configuration, launch line and batch script.

    from_: a configuration of that dialect; what the job says otherwise is changed in its text.
    """
    return Export(_ask(_request("export", locals()), catalogue))
