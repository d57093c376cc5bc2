"""Answers: the program's documents with plain attributes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Node(value)
    if isinstance(value, list):
        return [_wrapped(one) for one in value]
    return value


class Node:
    """A part of a document: its keys are attributes. Bytes are whole numbers, times seconds."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_document":
            raise AttributeError(name)
        if name in self._document:
            return _wrapped(self._document[name])
        raise AttributeError(
            f"{type(self).__name__} has no {name!r}; it has {', '.join(self._document)}"
        )

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._document[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._document})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._document == other._document

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        text = json.dumps(self._document)
        return f"{type(self).__name__}({text if len(text) < 300 else text[:297] + '...'})"

    def to_dict(self) -> dict[str, Any]:
        """The document: what the program prints with --json."""
        import copy

        return copy.deepcopy(self._document)


class Result(Node):
    """An answer. `tables` are the lists that to_dataframe() knows, the first one being its own."""

    tables: dict[str, str] = {}

    def rows(self, of: str | None = None) -> list[dict[str, Any]]:
        """The lines of a table as dictionaries; nested values are left out."""
        if not self.tables:
            raise TypeError(f"{type(self).__name__} has no tables")
        name = next(iter(self.tables)) if of is None else of
        if name not in self.tables:
            raise ValueError(f"of: {of!r} is no table; it has {', '.join(self.tables)}")
        return [
            {key: value for key, value in line.items() if not isinstance(value, (dict, list))}
            for line in self._lines(self.tables[name])
        ]

    def _lines(self, path: str) -> list[dict[str, Any]]:
        """The objects at a path such as memory.classes.terms; a class names its lines."""
        lines: list[dict[str, Any]] = [self._document]
        for key in path.split("."):
            below: list[dict[str, Any]] = []
            for line in lines:
                value = line.get(key, [])
                named = {"class": line["class"]} if "class" in line else {}
                for one in value if isinstance(value, list) else [value]:
                    below.append({**named, **one})
            lines = below
        return lines

    def to_dataframe(self, of: str | None = None, *, library: str = "pandas") -> Any:
        """A table as a data frame of pandas or polars, which must be there."""
        rows = self.rows(of)
        if library == "pandas":
            import pandas

            return pandas.DataFrame(rows)
        if library == "polars":
            import polars

            return polars.DataFrame(rows)
        raise ValueError(f"library: {library!r} is not known; expected pandas or polars")

    def headline(self) -> str:
        """The answer in a sentence."""
        return str(self._document.get("schema", ""))

    def _bars(self) -> tuple[str, dict[str, float]]:
        raise TypeError(f"{type(self).__name__} has nothing to plot")

    def plot(self, ax: Any = None) -> Any:
        """Bars with matplotlib, which must be there; gives the axes."""
        unit, bars = self._bars()
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        ax.barh(list(bars), list(bars.values()))
        ax.invert_yaxis()
        ax.set_xlabel(unit)
        ax.set_title(self.headline())
        return ax

    def _repr_html_(self) -> str:
        import html

        text = f"<p><b>{html.escape(self.headline())}</b></p>"
        if not self.tables:
            return text
        rows = self.rows()[:20]
        keys = list(dict.fromkeys(key for row in rows for key in row))
        head = "".join(f"<th>{html.escape(key)}</th>" for key in keys)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(row.get(key, '')))}</td>" for key in keys)
            + "</tr>"
            for row in rows
        )
        return f"{text}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class ModelSheet(Result):
    """Every tensor of a model, exact counts, FLOPs per token."""

    tables = {"tensors": "tensors"}

    def headline(self) -> str:
        return f"{self.name}: {self.parameters.total:,} parameters"


class Derivation(Result):
    """Memory per device and state, communication per axis, and what the rules say."""

    tables = {
        "memory": "memory.classes.terms",
        "communication": "communication.classes.terms",
        "mesh": "mesh",
        "findings": "findings",
    }

    @property
    def good(self) -> bool:
        """It fits, and no rule is broken."""
        return bool(self._document["verdict"]["good"])

    @property
    def fits(self) -> bool:
        return bool(self._document["memory"]["fits"])

    @property
    def peak_bytes(self) -> int:
        return int(self._document["memory"]["peak_bytes"])

    @property
    def sent_bytes(self) -> int:
        """In a step, by the device that sends most."""
        return int(self._document["communication"]["sent_bytes"])

    def headline(self) -> str:
        return f"{self.placement}: {self.verdict.text}"

    def _bars(self) -> tuple[str, dict[str, float]]:
        first = self._document["memory"]["classes"][0]
        return "bytes at the peak", {key: float(value) for key, value in first["bytes"].items()}


class Comparison(Result):
    """Several placements of one job."""

    tables = {"ratios": "ratios"}

    @property
    def derivations(self) -> list[Derivation]:
        return [Derivation(one) for one in self._document["derivations"]]

    def headline(self) -> str:
        return str(self._document["answer"])

    def _bars(self) -> tuple[str, dict[str, float]]:
        peaks = {str(one.placement): float(one.peak_bytes) for one in self.derivations}
        return "bytes at the peak", peaks


class Timeline(Result):
    """The time of a step, and where it goes."""

    tables = {"terms": "terms", "stages": "stages", "findings": "findings"}

    def headline(self) -> str:
        seconds = self._document.get("step_seconds")
        return f"{self.placement}: " + ("no step" if seconds is None else f"{seconds:.4g} s a step")

    def _bars(self) -> tuple[str, dict[str, float]]:
        return "seconds", {key: float(one) for key, one in self._document["breakdown"].items()}


class Plan(Node):
    """One placement of those that a search found."""


class Plans(Result):
    """The best placements of a model on a cluster, the best first."""

    tables = {"plans": "plans"}

    @property
    def plans(self) -> list[Plan]:
        return [Plan(one) for one in self._document["plans"]]

    @property
    def best(self) -> Plan | None:
        """None: nothing fits."""
        plans = self.plans
        return plans[0] if plans else None

    def headline(self) -> str:
        best = self.best
        if best is None:
            return "no plan fits"
        said = f"{best.placement}: {best.step_seconds:.4g} s a step"
        return said if self.exact else said + " (the best so far: the search was stopped)"

    def _bars(self) -> tuple[str, dict[str, float]]:
        return "seconds a step", {
            str(one.placement): float(one.step_seconds) for one in self.plans
        }


class Verdict(Result):
    """Whether a step is the training of one device."""

    tables = {"findings": "findings"}

    def __bool__(self) -> bool:
        return bool(self._document.get("equivalent", False))

    def headline(self) -> str:
        return "the training of one device" if self else "not the training of one device"


class Run(Result):
    """Steps that were run on real numbers, beside one device."""

    tables = {"steps": "steps"}

    def __bool__(self) -> bool:
        return bool(self._document.get("equal", False))

    def headline(self) -> str:
        return "equal to one device" if self else "not equal to one device"


class Program(Result):
    """A step program."""

    def headline(self) -> str:
        return " ".join(f"{one.axis}={one.degree}" for one in self.axes)


class Import(Result):
    """An engine's configuration as a job, and what became of each key."""

    tables = {"ledger": "ledger", "missing": "missing"}

    def __bool__(self) -> bool:
        return not self._document["missing"]

    def headline(self) -> str:
        words = self._document["job"]
        missing = [one["what"] for one in self._document["missing"]]
        text = ", ".join(f"{word}={value}" for word, value in words.items())
        return text if not missing else f"{text}; missing: {', '.join(missing)}"

    def words(self) -> dict[str, Any]:
        """What it says of the job, as keywords of derive and others."""
        words: dict[str, Any] = {}
        for word, value in self._document["job"].items():
            is_sheet = word == "model" and value.startswith("{")
            words[word.replace("-", "_")] = json.loads(value) if is_sheet else value
        return words


class Lint(Result):
    """What is wrong in an engine's configuration. True: no error."""

    tables = {"findings": "findings"}

    def __bool__(self) -> bool:
        return all(one["severity"] != "error" for one in self._document["findings"])

    def headline(self) -> str:
        return "; ".join(
            f"{one['file']}:{one['line']}: {one['severity']} {one['code']}: {one['message']}"
            for one in self._document["findings"]
        )

    def mended_texts(self) -> dict[str, str]:
        """With fix: the texts that were mended, by name."""
        return {one["file"]: one["text"] for one in self._document.get("mended", [])}


class Export(Result):
    """The files that launch a job. False: the dialect cannot say it, `unsaid` has why."""

    tables = {"files": "files", "unsaid": "unsaid"}

    def __bool__(self) -> bool:
        return not self._document["unsaid"]

    def headline(self) -> str:
        if not self:
            return ", ".join(one["word"] for one in self._document["unsaid"]) + " cannot be said"
        return ", ".join(one["name"] for one in self._document["files"])

    def texts(self) -> dict[str, str]:
        """The files by name."""
        return {one["name"]: one["text"] for one in self._document["files"]}


class Listing(Result):
    """A list of what there is."""

    tables = {"entries": "entries"}

    @property
    def names(self) -> list[str]:
        return [str(one["name"]) for one in self._document["entries"]]

    def headline(self) -> str:
        return str(self._document["kind"])
