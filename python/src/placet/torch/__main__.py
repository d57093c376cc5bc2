"""python -m placet.torch check SCRIPT --world N [-- ARGUMENTS OF THE SCRIPT]"""

from __future__ import annotations

import argparse
import json
import shlex
import sys

from .._errors import InputError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m placet.torch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="is the script's training that of one device?")
    check.add_argument("script")
    check.add_argument("--world", type=int, required=True, help="ranks to run it on")
    check.add_argument(
        "--data-parallel",
        type=int,
        default=0,
        help="how many of them have samples of their own (default: all)",
    )
    check.add_argument("--steps", type=int, default=2, help="updates to compare (default: 2)")
    check.add_argument("--timeout", type=float, default=120.0, help="seconds (default: 120)")
    check.add_argument("--reference-args", help="arguments of the script on one device, if others")
    check.add_argument("--json", action="store_true")
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


def main(arguments: list[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    at = words.index("--") if "--" in words else len(words)
    given = _parser().parse_args(words[:at])
    given.arguments = words[at + 1 :]
    try:
        return _check(given)
    except InputError as wrong:
        print(f"placet.torch: {wrong}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
