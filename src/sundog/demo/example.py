"""The example that comes with the package: 10,000 census records, 5,000 others that are held out, and their schema."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

from sundog.files import refuse_output

TABLE, HOLDOUT, SCHEMA = "adult.csv.gz", "adult_holdout.csv.gz", "adult.schema.yaml"


def copy_example_file(target: Path) -> Path:
    """Copy the file with the name of `target` from the package to `target`, and return `target`."""
    with resources.as_file(resources.files("sundog.demo") / target.name) as source:
        return Path(shutil.copyfile(source, target))


def write_example(folder: Path) -> list[Path]:
    """Write the example table, the held-out records and the schema into `folder`, and return their paths.

    No file is replaced: raises if one of them exists.
    """
    paths = [folder / name for name in (TABLE, HOLDOUT, SCHEMA)]
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        refuse_output(path, {}, fix="choose another folder with -o")
    return [copy_example_file(path) for path in paths]
