"""The layout of the package: folders import in one order, files and functions are short, file names are unique.

Each rule is also run on a package that violates it, to show that it detects violations.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import sundog

SOURCE = Path(sundog.__file__).parent
TESTS = Path(__file__).parent
BENCHMARKS = TESTS.parent / "benchmarks"

FOLDERS = (
    "privacy",
    "data",
    "training",
    "models",
    "mixture",
    "release",
    "fit",
    "evaluation",
    "auditing",
    "tally",
    "demo",
    "cli",
)
ENTRANCES = {"sundog", "sundog.__main__"}  # the public names and the program, which may import from any folder

# `Schema.draft(df)` is public, and drafting reads data, which takes a schema.
CYCLES_ALLOWED = {("sundog.data.schema", "sundog.data.drafting.draft")}

LONGEST_FILE = 400
LONGEST_FUNCTION = 50  # from `def` to its last line, docstring included

# Names that several folders may use, because they have the same meaning in each.
SHARED_NAMES = {
    "__init__",
    "configuration",  # the settings of a model
    "released",  # the reader of a model in a release
}


class Package:
    """The modules of a package and what they import."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self.paths = {self._name_of(path): path for path in sorted(folder.rglob("*.py"))}
        self.trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in self.paths.items()}

    def _name_of(self, path: Path) -> str:
        parts = [self.name, *path.relative_to(self.folder).with_suffix("").parts]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def imports(self, module: str, *, for_types: bool) -> set[str]:
        """Return the modules of this package that a module imports, also inside functions.

        Args:
            module: the name of the module.
            for_types: whether to include what only type checkers import.
        """
        tree = self.trees[module]
        unused = set() if for_types else {id(node) for block in _typing_blocks(tree) for node in ast.walk(block)}
        found = (self._imported(node) for node in ast.walk(tree) if id(node) not in unused)
        return {name for names in found for name in names if name in self.paths and name != module}

    def _imported(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            return [name if name in self.paths else node.module for name in inside]
        return []

    def position(self, module: str) -> int:
        """Return the position of a module's folder in the order; 0 for modules at the root, which come first."""
        _, _, rest = module.partition(".")
        name = rest.partition(".")[0]
        return 1 + FOLDERS.index(name) if name in FOLDERS else 0


def _typing_blocks(tree: ast.Module) -> Iterator[ast.If]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield node


def find_backward_imports(package: Package) -> list[str]:
    return [
        f"{module} imports {name}"
        for module in package.paths
        if module not in ENTRANCES
        for name in sorted(package.imports(module, for_types=True))
        if package.position(name) > package.position(module)
    ]


def find_import_cycle(package: Package) -> list[str]:
    graph = {
        module: {name for name in package.imports(module, for_types=False) if (module, name) not in CYCLES_ALLOWED}
        for module in package.paths
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def find_long_files(package: Package) -> list[str]:
    sizes = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in package.paths.items()}
    return [f"{name}: {size} lines" for name, size in sizes.items() if size > LONGEST_FILE]


def find_long_functions(package: Package) -> list[str]:
    return [
        f"{module}.{node.name}: {lines} lines"
        for module, tree in package.trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (lines := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    ]


def find_repeated_names(package: Package) -> dict[str, list[str]]:
    """Return files of the same name in several folders; commands may share a name with a module."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in package.paths.values():
        inside = path.relative_to(package.folder)
        if path.stem not in SHARED_NAMES and inside.parts[0] != "cli":
            found[path.stem].append(inside.as_posix())
    return {name: places for name, places in found.items() if len(places) > 1}


def find_unknown_folders(package: Package) -> set[str]:
    folders = (path.relative_to(package.folder).parts[:-1] for path in package.paths.values())
    return {folder[0] for folder in folders if folder} - set(FOLDERS)


@pytest.fixture(scope="module")
def package() -> Package:
    return Package(SOURCE)


def test_every_folder_has_a_position_in_the_order(package: Package) -> None:
    assert find_unknown_folders(package) == set()


def test_imports_follow_the_order_of_the_folders(package: Package) -> None:
    assert find_backward_imports(package) == []


def test_there_is_no_import_cycle(package: Package) -> None:
    assert find_import_cycle(package) == []
    assert all(name in package.imports(module, for_types=False) for module, name in CYCLES_ALLOWED)


@pytest.mark.parametrize("folder", [SOURCE, TESTS, BENCHMARKS], ids=lambda folder: folder.name)
def test_files_and_functions_are_short(folder: Path) -> None:
    package = Package(folder)
    assert package.paths
    assert find_long_files(package) == []
    assert find_long_functions(package) == []


def test_file_names_are_unique(package: Package) -> None:
    assert find_repeated_names(package) == {}


def test_folders_of_tests_are_folders_of_the_source() -> None:
    """Except for tests of several folders: of contracts, documentation and statistics."""
    folders = {path.parent.relative_to(SOURCE) for path in SOURCE.rglob("*.py")}
    tested = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    apart = {folder for folder in tested if folder.parts and folder.parts[0] in ("contracts", "docs", "statistical")}
    assert tested - apart <= folders


def _write(folder: Path, files: dict[str, str]) -> Package:
    for name, text in files.items():
        path = folder / "sundog" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Package(folder / "sundog")


@pytest.mark.parametrize(
    "line",
    [
        "from sundog.fit.run import start",
        "from sundog.fit import run",
        "import sundog.fit.run",
        "def f():\n    from sundog.fit.run import start",
        "if TYPE_CHECKING:\n    from sundog.fit.run import Run",
    ],
)
@pytest.mark.parametrize("place", ["privacy/noise.py", "files.py"])
def test_an_import_against_the_order_is_found(place: str, line: str, tmp_path: Path) -> None:
    package = _write(tmp_path, {place: line, "fit/run.py": "from sundog.privacy.noise import draw"})
    assert find_backward_imports(package) == [f"sundog.{place[:-3].replace('/', '.')} imports sundog.fit.run"]


def test_an_import_cycle_is_found_unless_it_is_only_for_types(tmp_path: Path) -> None:
    files = {"data/a.py": "from sundog.data.b import x", "data/b.py": "def f():\n    import sundog.data.a"}
    assert set(find_import_cycle(_write(tmp_path / "cycle", files))) == {"sundog.data.a", "sundog.data.b"}
    files["data/b.py"] = "if TYPE_CHECKING:\n    import sundog.data.a"
    assert find_import_cycle(_write(tmp_path / "types", files)) == []


def test_long_files_and_functions_are_found(tmp_path: Path) -> None:
    body = "    x = 1\n"
    files = {
        "data/long.py": "x = 1\n" * (LONGEST_FILE + 1),
        "data/function.py": f"def f():\n{body * LONGEST_FUNCTION}",
        "data/docstring.py": f'def f():\n    """Does it."""\n{body * (LONGEST_FUNCTION - 1)}',
        "cli/command.py": f"def f(\n    x: int,\n):\n{body * (LONGEST_FUNCTION - 2)}",
        "data/short.py": f'@cache\ndef f():\n    """Does it."""\n{body * (LONGEST_FUNCTION - 2)}',
    }
    package = _write(tmp_path, files)
    assert [line.partition(":")[0] for line in find_long_files(package)] == ["sundog.data.long"]
    functions = {line.partition(":")[0] for line in find_long_functions(package)}
    assert functions == {"sundog.cli.command.f", "sundog.data.docstring.f", "sundog.data.function.f"}


def test_a_repeated_name_and_an_unknown_folder_are_found(tmp_path: Path) -> None:
    files = {"data/grid.py": "", "models/gan/grid.py": "", "cli/grid.py": "", "attic/box.py": ""}
    package = _write(tmp_path, files)
    assert find_repeated_names(package) == {"grid": ["data/grid.py", "models/gan/grid.py"]}
    assert find_unknown_folders(package) == {"attic"}
