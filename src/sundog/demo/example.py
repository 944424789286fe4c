"""The example that comes with the package: a table of 10,000 census records and its schema."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

from sundog.files import refuse_output

TABLE, SCHEMA = "adult.csv.gz", "adult.schema.yaml"


def copy_example_file(target: Path) -> Path:
    """Copy the file with the name of `target` from the package to `target`, and return `target`."""
    with resources.as_file(resources.files("sundog.demo") / target.name) as source:
        return Path(shutil.copyfile(source, target))


def write_example(folder: Path) -> tuple[Path, Path]:
    """Write the example table and its schema into `folder`, and return their paths.

    No file is replaced: raises if one of the two exists.
    """
    table, schema = folder / TABLE, folder / SCHEMA
    folder.mkdir(parents=True, exist_ok=True)
    for path in (table, schema):
        refuse_output(path, {}, fix="choose another folder with -o")
    return copy_example_file(table), copy_example_file(schema)
