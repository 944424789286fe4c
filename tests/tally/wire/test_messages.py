"""Messages have one encoding, which golden vectors fix, and everything else is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tally.vectors import make_vectors

from sundog.errors import TallyError
from sundog.tally.wire.codecs import Bits, Cells, Codec, Fixed, Reader, Rows, Unsigned
from sundog.tally.wire.message import Message
from sundog.tally.wire.survivor_messages import Survivors

VECTORS = Path(make_vectors.__file__).parent
MESSAGES = {type(message).__name__: message for message in make_vectors.make_messages()}


def load(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


def test_golden_vectors_are_those_of_the_code() -> None:
    assert load("wire") == make_vectors.make_wire()
    assert load("malformed") == make_vectors.make_malformed()


@pytest.mark.parametrize("vector", load("wire"), ids=lambda vector: vector["message"])
def test_a_message_is_read_as_it_was_written(vector: dict[str, Any]) -> None:
    message = type(MESSAGES[vector["message"]]).decode(bytes.fromhex(vector["hex"]))
    assert message == MESSAGES[vector["message"]]
    assert make_vectors.to_json(message) == vector["fields"]


@pytest.mark.parametrize("vector", load("malformed"), ids=lambda vector: f"{vector['message']} {vector['why']}")
def test_a_malformed_message_is_refused(vector: dict[str, str]) -> None:
    with pytest.raises(TallyError):
        type(MESSAGES[vector["message"]]).decode(bytes.fromhex(vector["hex"]))


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
def test_every_truncation_is_refused(message: Message) -> None:
    data = message.encode()
    for length in range(len(data)):
        with pytest.raises(TallyError):
            type(message).decode(data[:length])


@given(st.data())
def test_a_changed_byte_is_refused_or_read_as_another_message(data: st.DataObject) -> None:
    message = data.draw(st.sampled_from(list(MESSAGES.values())))
    encoded = bytearray(message.encode())
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] ^= data.draw(st.integers(1, 255))
    try:
        read = type(message).decode(bytes(encoded))
    except TallyError:
        return
    assert read != message
    assert read.encode() == bytes(encoded), "there is one encoding of each message"


@given(st.binary(max_size=300))
def test_other_bytes_are_refused_unless_they_are_the_one_encoding_of_a_message(data: bytes) -> None:
    for message in MESSAGES.values():
        try:
            read = type(message).decode(data)
        except TallyError:
            continue
        assert read.encode() == data


def test_kinds_differ() -> None:
    assert len({message.KIND for message in MESSAGES.values()}) == len(MESSAGES)


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        (Fixed(2), b"a"),
        (Rows(2), (b"ab", b"c")),
        (Rows(1, most=1), (b"a", b"b")),
        (Cells(), np.zeros(3, dtype=np.int64)),
        (Cells(most=2), np.zeros(3, dtype=np.uint32)),
        (Bits(), np.zeros(3, dtype=np.uint8)),
        (Bits(most=2), np.zeros(3, dtype=bool)),
    ],
)
def test_what_has_no_encoding_is_not_written(codec: Codec, value: Any) -> None:
    with pytest.raises(ValueError, match=r"at most|where 2 belong"):
        codec.write(value)
    with pytest.raises(OverflowError):
        Unsigned(1).write(256)


def test_a_message_that_claims_to_be_huge_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(TallyError, match="4294967295 items where at most 1048576"):
        Cells().read(Reader(b"\xff\xff\xff\xff"))


def test_messages_without_a_signature_are_equal_by_their_bytes() -> None:
    a = Survivors(bytes(32), np.array([True]))
    assert a == Survivors(bytes(32), np.array([True]))
    assert a != Survivors(bytes(32), np.array([False]))
    assert hash(a) == hash(Survivors(bytes(32), np.array([True])))
