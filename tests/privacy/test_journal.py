"""The journal: what is acknowledged is on the disk, what is torn is removed, what is damaged is refused."""

import errno
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sundog.errors import LedgerError
from sundog.privacy.journal import Journal

HEADER = {"format": "test"}
NAMES = ["one", "two é\u2028 \r\n three", "four"]


def read(path: Path) -> list[str]:
    return [line["name"] for line in Journal(path).read()[1:]]


def append(path: Path, *names: str) -> None:
    journal = Journal(path)
    for name in names:
        with journal.lock():
            journal.append({"name": name})


def get_refusal(path: Path) -> str:
    before = path.read_bytes()
    with pytest.raises(LedgerError) as caught:
        Journal(path).read()
    assert path.read_bytes() == before  # evidence is never touched
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal"
    Journal.create(path, HEADER)
    for name in NAMES:
        append(path, name)
    return path


def test_what_was_written_is_read(path: Path) -> None:
    assert read(path) == NAMES
    assert Journal(path).read()[0] == HEADER
    assert path.read_bytes().count(b"\n") == 4
    assert all(isinstance(json.loads(line), dict) for line in path.read_bytes().split(b"\n")[:-1])


def test_an_open_journal_sees_what_others_wrote(path: Path) -> None:
    mine = Journal(path)
    mine.read()
    append(path, "five", "six")
    assert [line["name"] for line in mine.read()[1:]] == [*NAMES, "five", "six"]
    with mine.lock():
        mine.append({"name": "seven"})
    assert read(path) == [*NAMES, "five", "six", "seven"]


def test_appending_needs_the_lock(path: Path) -> None:
    with pytest.raises(RuntimeError):
        Journal(path).append({"name": "x"})


def test_the_lock_holds_against_another_opening_of_the_file(path: Path) -> None:
    mine, theirs, order = Journal(path), Journal(path), list[str]()
    started = threading.Event()

    def wait() -> None:
        started.set()
        with theirs.lock():
            order.append("theirs")
            assert theirs.lines[-1]["name"] == "held"

    thread = threading.Thread(target=wait)
    with mine.lock():
        thread.start()
        assert started.wait(600)
        thread.join(0.1)
        assert thread.is_alive()
        mine.append({"name": "held"})
        order.append("mine")
    thread.join(600)
    assert order == ["mine", "theirs"]


def test_a_new_journal_never_replaces_a_file(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="exists already"):
        Journal.create(path, HEADER)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["journal"]


@pytest.mark.parametrize("where", ["no folder/journal", "a file/journal", "x" * 300])
def test_a_journal_that_cannot_be_created(tmp_path: Path, where: str) -> None:
    (tmp_path / "a file").write_text("precious")
    with pytest.raises(LedgerError, match="cannot be created"):
        Journal.create(tmp_path / where, HEADER)
    assert [file.name for file in tmp_path.iterdir()] == ["a file"]


def test_threads_that_create_the_same_journal_leave_one(tmp_path: Path) -> None:
    made: list[int] = []
    refused: list[str] = []
    barrier = threading.Barrier(8)

    def create(number: int) -> None:
        barrier.wait()
        try:
            Journal.create(tmp_path / "journal", {"number": number})
        except LedgerError as error:
            refused.append(str(error))
        else:
            made.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert all("exists already" in message for message in refused)
    assert [line["number"] for line in Journal(tmp_path / "journal").read()] == made
    assert [file.name for file in tmp_path.iterdir()] == ["journal"]


# --- torn and damaged files -----------------------------------------------------------------------------------------


def test_a_torn_last_line_is_removed_wherever_it_was_torn(path: Path) -> None:
    data = path.read_bytes()
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(start, len(data) - 1):
        path.write_bytes(data[:end])
        journal = Journal(path)
        journal.read()
        assert journal.torn == (end > start)
        append(path, "after")
        assert read(path) == [*NAMES[:-1], "after"]
    path.write_bytes(data)
    assert read(path) == NAMES


def test_a_last_line_that_lacks_only_its_newline_counts(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    mine = Journal(path)
    assert [line["name"] for line in mine.read()[1:]] == NAMES
    assert not mine.torn
    mine.read()
    assert path.read_bytes() == data[:-1]  # reading changes nothing
    append(path, "five")
    assert path.read_bytes().startswith(data)
    assert [line["name"] for line in mine.read()[1:]] == read(path) == [*NAMES, "five"]


def test_a_header_that_lacks_only_its_newline_is_one(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal.create(path, HEADER)
    path.write_bytes(path.read_bytes()[:-1])
    append(path, "one")
    assert read(path) == ["one"]


def test_a_line_without_a_digest_after_one_with_is_refused(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])
    del last["digest"]
    lines[-1] = json.dumps({**last, "name": "forged"}).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    assert "line 4 was edited" in get_refusal(path)


def test_a_torn_line_of_zeros_or_garbage_is_passed_over_and_then_written_over(path: Path) -> None:
    data = path.read_bytes()
    for tail in (b"\0" * 4096, b"\xff\xfe garbage", b"{", b"\r", b'"'):
        path.write_bytes(data + tail)
        assert read(path) == NAMES
        assert path.read_bytes() == data + tail  # reading changes nothing
        append(path, "next")
        assert read(path) == [*NAMES, "next"]
        assert path.read_bytes().startswith(data)


@pytest.mark.parametrize("line", [1, 2, 3, 4])
def test_an_edited_line_is_refused(path: Path, line: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b"e", b"E", 2).replace(b"Ed", b"ed")
    path.write_bytes(b"".join(lines))
    assert f"line {line}" in get_refusal(path) or f"line {line + 1}" in get_refusal(path)


def test_every_flipped_byte_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    for at in range(len(data) - 1):
        damaged = bytearray(data)
        damaged[at] ^= 0x01
        path.write_bytes(bytes(damaged))
        with pytest.raises(LedgerError, match=r"line \d"):
            Journal(path).read()


@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_lost_line_is_refused(path: Path, line: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[line - 1]
    path.write_bytes(b"".join(lines))
    assert f"line {line}" in get_refusal(path)


def test_swapped_and_doubled_lines_are_refused(path: Path) -> None:
    header, one, two, three = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + two + one + three)
    assert "line 2" in get_refusal(path)
    path.write_bytes(header + one + one + two + three)
    assert "line 3" in get_refusal(path)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\n",
        b"\r\n",
        b"\0\0\0\n",
        b"\xff\xfe\n",
        b"null\n",
        b"1\n",
        b"[]\n",
        b'["chain"]\n',
        b"{}\n",
        b'{"chain": 1}\n',
        b'{"chain": null}\n',
        b"{not json}\n",
        b"9" * 5000 + b"\n",
        b"[" * 100_000 + b"\n",
    ],
    ids=lambda raw: repr(raw[:12]),
)
@pytest.mark.parametrize("where", [0, 2, 4], ids=["first", "middle", "last"])
def test_a_line_of_garbage_is_refused(path: Path, garbage: bytes, where: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(where, garbage)
    path.write_bytes(b"".join(lines))
    assert f"line {where + 1}" in get_refusal(path)


# A file without any newline is not a torn journal (those begin with a whole header): it is somebody's file.
@pytest.mark.parametrize("content", [b"precious", b"a,b,c", b"\x89PNG", b'{"format": "test"}'])
def test_a_file_that_is_no_journal_is_never_shortened(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine"
    path.write_bytes(content)
    with suppress(LedgerError):
        Journal(path).read()
    assert path.read_bytes() == content


# While a journal is open, the file may be replaced or cut behind its back; its own memory must not hide that.
def test_a_file_that_lost_lines_while_open_is_refused(path: Path) -> None:
    mine = Journal(path)
    mine.read()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    with pytest.raises(LedgerError), mine.lock():
        mine.append({"name": "x"})


def test_a_file_that_was_edited_while_open_is_refused(path: Path) -> None:
    mine = Journal(path)
    mine.read()
    path.write_bytes(path.read_bytes().replace(b"one", b"ONE"))
    with pytest.raises(LedgerError), mine.lock():
        mine.append({"name": "x"})


# --- files that cannot be used --------------------------------------------------------------------------------------


@contextmanager
def become_nobody() -> Iterator[None]:
    """Root may write what is read-only; give that up for a moment."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_read_only_file_is_refused_and_kept() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "journal"
        Journal.create(path, HEADER)
        before = path.read_bytes()
        path.chmod(0o444)
        folder.chmod(0o555)
        with become_nobody():
            with pytest.raises(LedgerError, match="cannot be opened"):
                append(path, "x")
            with pytest.raises(LedgerError, match="cannot be created"):
                Journal.create(folder / "other", HEADER)
        folder.chmod(0o755)
        assert path.read_bytes() == before


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nothing", tmp_path, tmp_path / "file" / "x"):
        with pytest.raises(LedgerError, match=r"cannot be opened|no such file") as caught:
            Journal(path).read()
        assert str(path) in str(caught.value)
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("failing", ["write", "write after a part", "fsync"])
def test_a_full_disk_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    before = path.read_bytes()
    real_write, calls = os.write, list[int]()

    def write(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if failing == "write" or len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_write(descriptor, data[: len(data) // 2])

    def fsync(descriptor: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    journal = Journal(path)
    with monkeypatch.context() as patch:
        if failing == "fsync":
            patch.setattr(os, "fsync", fsync)
        else:
            patch.setattr(os, "write", write)
        with pytest.raises(LedgerError, match="cannot be written") as caught, journal.lock():
            journal.append({"name": "lost"})
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    with journal.lock():  # and the same journal goes on when there is room again
        journal.append({"name": "five"})
    assert read(path) == [*NAMES, "five"]


def test_short_writes_are_completed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, data[:7]))
        append(path, "five", "six")
    assert read(path) == [*NAMES, "five", "six"]


def test_what_json_cannot_hold_is_refused_before_anything_is_written(path: Path) -> None:
    before = path.read_bytes()
    journal = Journal(path)
    for bad in (float("nan"), {1, 2}, object()):
        with pytest.raises((ValueError, TypeError)), journal.lock():
            journal.append({"name": bad})
    assert path.read_bytes() == before
