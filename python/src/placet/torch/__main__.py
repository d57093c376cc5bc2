"""python -m placet.torch check SCRIPT --world N [-- ARGUMENTS OF THE SCRIPT]
python -m placet.torch audit RUN --model M --placement P [flags of a job]"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import fields
from typing import Any

from .._errors import InputError
from .._job import Job


def _add_check(commands: Any) -> None:
    check = commands.add_parser(
        "check",
        help="is the script's training that of one device?",
        description="Runs SCRIPT as it is, on one device and on N ranks, and compares every entry "
        "that an optimizer updates. Status 0: equivalent, 1: not, 2: it cannot be run.",
        epilog="Arguments of the script stand behind --.",
    )
    check.add_argument("script", metavar="SCRIPT")
    check.add_argument(
        "--world", type=int, required=True, metavar="N", help="ranks to run it on, 1 to 64"
    )
    check.add_argument(
        "--data-parallel",
        type=int,
        default=0,
        metavar="K",
        help="how many of them have samples of their own (default: all)",
    )
    check.add_argument(
        "--steps", type=int, default=2, metavar="N", help="updates to compare (default: 2)"
    )
    check.add_argument(
        "--timeout", type=float, default=120.0, metavar="SECONDS", help="(default: 120)"
    )
    check.add_argument(
        "--reference-args",
        metavar="WORDS",
        help="arguments of the script on one device, if others (one text)",
    )
    check.add_argument("--json", action="store_true", help="print placet.torch.verdict/1")


def _add_audit(commands: Any) -> None:
    audit = commands.add_parser(
        "audit",
        help="is what a run sent and held what is derived?",
        description="Puts what a run left beside what is derived for a job: a record of "
        "placet.torch.Recorder, a Chrome trace, an execution trace, a Flight Recorder dump, a "
        "memory snapshot, or a log of NCCL, Megatron or torchtitan. Status 0: it agrees, 1: it "
        "differs, 2: it cannot be read.",
    )
    audit.add_argument("run", metavar="RUN", help="the file")
    audit.add_argument(
        "--step",
        type=int,
        metavar="N",
        help="counted from 0, where the file marks steps (default: the last)",
    )
    audit.add_argument(
        "--rank", type=int, default=0, metavar="N", help="process of a log (default: 0)"
    )
    audit.add_argument(
        "--device-class",
        type=int,
        default=0,
        metavar="N",
        help="class of devices that the rank is of, as derive lists them (default: 0)",
    )
    audit.add_argument(
        "--fit",
        metavar="FOLDER",
        help="write what is systematic as FOLDER/engines/NAME@VERSION.json, for --data FOLDER",
    )
    audit.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder of data of your own over the shipped data (may be repeated)",
    )
    audit.add_argument("--json", action="store_true", help="print placet.audit/1")
    job = audit.add_argument_group("job", "as derive has them")
    for field in fields(Job):
        job.add_argument("--" + field.name.replace("_", "-"), metavar="WORD")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m placet.torch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    _add_check(commands)
    _add_audit(commands)
    return parser


def _check(given: argparse.Namespace) -> int:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise InputError(
            {
                "message": "check: PyTorch cannot be imported; install torch beside placet",
                "where": "check",
                "value": "torch",
                "problem": "cannot be imported",
                "allowed": "an environment with torch",
                "nearest": "",
            }
        ) from None
    from ._check import check
    from ._session import Options

    verdict = check(
        Options(
            given.script,
            given.arguments,
            None if given.reference_args is None else shlex.split(given.reference_args),
            given.world,
            given.data_parallel,
            given.steps,
            given.timeout,
        )
    )
    print(json.dumps(verdict.to_dict()) if given.json else verdict.text())
    return 0 if verdict.equivalent else 1


def _audit(given: argparse.Namespace) -> int:
    from ._audit import audit
    from ._fit import fit
    from ._sources import wrong

    words = {field.name: getattr(given, field.name) for field in fields(Job)}
    job = {name: word for name, word in words.items() if word is not None}
    where: dict[str, Any] = {"rank": given.rank, "device_class": given.device_class}
    if given.data and given.fit is None:
        from .._catalogue import Catalogue

        where["catalogue"] = Catalogue(data=given.data)
    if given.fit is None:
        found = audit(given.run, step=given.step, **where, **job)
        print(json.dumps(found.to_dict()) if given.json else found.text())
        return 0 if found.agrees else 1
    if given.step is not None:
        problem = "is not for --fit, which takes all steps but the first two"
        raise wrong("--step", given.step, problem, "--fit without --step")
    before, after, written = fit(given.run, given.fit, data=given.data, **where, **job)
    if given.json:
        document = {"before": before.to_dict(), "after": after.to_dict(), "written": written}
        print(json.dumps(document))
    else:
        print(f"before: {before.text()}")
        print(f"with {written}: {after.text()}")
    return 0 if after.agrees else 1


def main(arguments: list[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    at = words.index("--") if "--" in words else len(words)
    given = _parser().parse_args(words[:at])
    given.arguments = words[at + 1 :]
    try:
        return _check(given) if given.command == "check" else _audit(given)
    except InputError as wrong:
        print(f"placet.torch: {wrong}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
