"""How long it takes to begin: importing sundog, and `sundog --help`.

python benchmarks/startup.py [--quick] [--json FILE]
"""

from __future__ import annotations

import subprocess
import sys

from report import Row, arguments, interleaved, publish


def python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    options = arguments(__doc__ or "")
    seconds = interleaved(
        {
            "import sundog": lambda: python("import sundog"),
            "sundog --help": lambda: python("from sundog.cli.main import _run; _run(['--help'])"),
            "sundog plan": lambda: python(
                "from sundog.cli.main import _run; _run('plan --records 60000 --epsilon 4 --delta 1e-5 --batch 64 "
                "--epochs 20'.split())"
            ),
            "import pandas": lambda: python("import pandas"),
        },
        repeats=1 if options.quick else 7,
    )
    peer = seconds.pop("import pandas")
    publish([Row(name, value, "s", "import pandas", peer) for name, value in seconds.items()], options)


if __name__ == "__main__":
    main()
