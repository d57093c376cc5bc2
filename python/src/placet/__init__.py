"""Placet: say where the training state lives; see what that costs and whether it is still the same
training.

Each function is a subcommand of the program, its keywords are the flags, and ``to_dict()`` of its
result is the document that the program prints with ``--json``.
"""

from ._catalogue import Catalogue, catalogue
from ._errors import InputError
from ._job import Job, Model
from ._results import (
    Comparison,
    Derivation,
    Export,
    Import,
    Lint,
    Listing,
    ModelSheet,
    Node,
    Plan,
    Plans,
    Program,
    Result,
    Run,
    Timeline,
    Verdict,
)
from ._subcommands import (
    check,
    compare,
    derive,
    export,
    import_,
    lint,
    lower,
    model,
    plan,
    run,
    simulate,
    verify,
)

__version__ = "0.1.0"

__all__ = [
    "Catalogue",
    "Comparison",
    "Derivation",
    "Export",
    "Import",
    "InputError",
    "Job",
    "Lint",
    "Listing",
    "Model",
    "ModelSheet",
    "Node",
    "Plan",
    "Plans",
    "Program",
    "Result",
    "Run",
    "Timeline",
    "Verdict",
    "catalogue",
    "check",
    "compare",
    "derive",
    "export",
    "import_",
    "lint",
    "lower",
    "model",
    "plan",
    "run",
    "simulate",
    "verify",
]
