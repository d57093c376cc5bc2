#!/usr/bin/env python3
"""Whether a device's calibrated figures fit only the rows that they were chosen on.

The figures of a device file are scaled over a small grid (its rates of products by one factor, its
memory rate by another), the pair that is best on the even rows of the tables is taken, and the odd
rows say what it is worth: their mean error with that pair, beside that with the figures as shipped.
Then the same with the halves exchanged. Data files are only copied, never changed.

    tools/held_back.py build/release/placet data a100-80gb-sxm:a100-40gb-sxm \\
        "data/validation/tables/vtrain_single.csv" \\
        "data/validation/tables/llmfoundry_mpt.csv gpu=A100*"
"""

import argparse
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

STEPS = (0.96, 0.98, 1.0, 1.02, 1.04)


def scaled(device, products, memory):
    """The device file with both rates scaled."""
    compute = device["compute"]
    for fact in compute["matmul_tflops"].values():
        fact["value"] = round(fact["value"] * products, 3)
    compute["memory_gb_s"]["value"] = round(compute["memory_gb_s"]["value"] * memory, 3)
    return device


def mean_error(program, data, table, half):
    """Mean |error| of the step times of one half of a table's rows."""
    path, *conditions = table.split(" ")
    command = [program, "validate", path, "--half", half, "--json"]
    for condition in conditions:
        command += ["--where", condition]
    done = subprocess.run(
        command, env={**os.environ, "PLACET_DATA": str(data)}, capture_output=True, text=True
    )
    if not done.stdout:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["time"]["mean_abs_error"]


def errors(program, data, tables, half):
    return {table: mean_error(program, data, table, half) for table in tables}


class Trials:
    """Errors by pair of factors and half, over a copy of the data."""

    def __init__(self, program, data, devices, tables):
        self.program, self.devices, self.tables = program, devices, tables
        self.folder = tempfile.TemporaryDirectory()
        self.data = pathlib.Path(self.folder.name) / "data"
        shutil.copytree(data, self.data)
        self.texts = {name: self.file_of(name).read_text() for name in devices}
        self.known = {}

    def file_of(self, name):
        return self.data / "hardware" / "devices" / f"{name}.json"

    def errors(self, pair, half):
        if (pair, half) not in self.known:
            for name in self.devices:
                device = scaled(json.loads(self.texts[name]), *pair)
                self.file_of(name).write_text(json.dumps(device))
            self.known[pair, half] = errors(self.program, self.data, self.tables, half)
        return self.known[pair, half]

    def best(self, half):
        """The pair with the least mean error over the tables, each table counted once."""
        pairs = itertools.product(STEPS, STEPS)
        return min(pairs, key=lambda pair: sum(self.errors(pair, half).values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", help="the placet program")
    parser.add_argument("data", help="its data folder")
    parser.add_argument("devices", help="device files that share a calibration, a:b")
    parser.add_argument("tables", nargs="+", help='"TABLE.csv [COLUMN=TEXT ...]"')
    call = parser.parse_args()
    trials = Trials(call.program, call.data, call.devices.split(":"), call.tables)
    for chosen_on, judged_on in (("even", "odd"), ("odd", "even")):
        pair = trials.best(chosen_on)
        print(f"chosen on {chosen_on} rows: products x {pair[0]}, memory x {pair[1]}")
        shipped = trials.errors((1.0, 1.0), judged_on)
        held_back = trials.errors(pair, judged_on)
        for table in call.tables:
            name = pathlib.Path(table.split(" ")[0]).stem + "".join(" " + c for c in table.split(" ")[1:])
            print(
                f"  {name}, {judged_on} rows: {100 * held_back[table]:.1f} %,"
                f" as shipped {100 * shipped[table]:.1f} %"
            )


if __name__ == "__main__":
    main()
