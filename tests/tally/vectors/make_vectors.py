"""Golden vectors that every implementation of the tally is tested with.

    python -m tests.tally.vectors.make_vectors

writes `wire.json` (messages and their fields), `malformed.json` (what must be refused), `transcript.json` (a whole
round of peers, from fixed seeds) and `seals.json` (sealed seeds, which are random, so they are only opened).
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.tally.protocol.peers_group import Operator, PeersGroup

from sundog.tally.protocol.agreement import compute_public_key
from sundog.tally.protocol.identity import Identity, issue_credential
from sundog.tally.protocol.seed_sealing import commit_to_seed, derive_part_mask, seal_seeds
from sundog.tally.wire.keeper_messages import (
    Contribution,
    KeeperAdvertisement,
    MaskSums,
    SealedSeeds,
    SurvivorSeeds,
)
from sundog.tally.wire.key_messages import Advertisement, Directory, Entry
from sundog.tally.wire.message import Message, Record
from sundog.tally.wire.reveal_messages import RevealedShares
from sundog.tally.wire.round_parameters import KEEPERS, RoundParameters
from sundog.tally.wire.share_messages import DeliveredShares, SealedShares
from sundog.tally.wire.survivor_messages import Endorsement, Endorsements, MaskedVector, Survivors

FOLDER = Path(__file__).parent
MEMBERS, DROPPED = 5, 3


def fill(length: int, start: int) -> bytes:
    """Return bytes that differ from field to field."""
    return bytes((start + position) % 256 for position in range(length))


def make_messages() -> list[Message]:
    """Return one message of each kind."""
    round_digest, key, signature = fill(32, 1), fill(32, 50), fill(64, 100)
    entries = tuple(
        Entry(fill(32, n), fill(64, n + 1), fill(32, n + 2), fill(32, n + 3), 4 + n, fill(64, n + 5)) for n in (10, 20)
    )
    bits = np.array([True, False, True, True, False, False, False, False, True])
    vector = np.array([0, 1, 2**31, 2**32 - 1], dtype=np.uint32)
    seeds = SealedSeeds(
        key,
        signature,
        fill(32, 7),
        tuple(fill(32, n) for n in range(3)),
        tuple(fill(112, n) for n in range(3)),
        signature,
    )
    keepers = (fill(32, 3), fill(32, 4), fill(32, 5))
    return [
        RoundParameters(key, fill(32, 2), KEEPERS, 2**32 - 1, 4896, 100, fill(32, 6), keepers, 2, signature),
        Advertisement(round_digest, entries[0]),
        Directory(round_digest, 7, entries, 9, fill(32, 8), 3, (fill(32, 9),), (fill(32, 10), fill(32, 11))),
        SealedShares(round_digest, key, fill(32, 12), (fill(64, 13), fill(64, 14)), signature),
        DeliveredShares(round_digest, bits, (fill(64, 13),)),
        MaskedVector(round_digest, key, vector, signature),
        Survivors(round_digest, bits),
        Endorsement(round_digest, key, fill(32, 15), signature),
        Endorsements(round_digest, bits, (fill(64, 16), fill(64, 17))),
        RevealedShares(round_digest, key, (fill(24, 18), fill(24, 19)), signature),
        KeeperAdvertisement(round_digest, key, fill(32, 20), signature),
        Contribution(round_digest, seeds, vector),
        SurvivorSeeds(round_digest, (seeds, replace(seeds, identity=fill(32, 51)))),
        MaskSums(round_digest, key, fill(32, 21), vector, vector[::-1].copy(), signature),
    ]


def to_json(value: Any) -> Any:
    """Return a field as JSON: bytes as hex, members and cells as numbers, records as objects."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, np.ndarray):
        return [int(item) for item in value]
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if isinstance(value, Record):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}  # type: ignore[arg-type]
    return value


def make_wire() -> list[dict[str, Any]]:
    return [
        {
            "message": type(message).__name__,
            "kind": message.KIND,
            "hex": message.encode().hex(),
            "fields": to_json(message),
        }
        for message in make_messages()
    ]


def make_malformed() -> list[dict[str, str]]:
    """Return bytes that must be refused as the message that they are called."""
    found = []
    for message in make_messages():
        data, name = message.encode(), type(message).__name__
        wrong = {
            "empty": b"",
            "one byte": data[:1],
            "another version": bytes([2]) + data[1:],
            "another kind": data[:1] + bytes([data[1] ^ 64]) + data[2:],
            "without its last byte": data[:-1],
            "with a byte after its end": data + b"\0",
            "twice": data + data,
        }
        found += [{"message": name, "why": why, "hex": value.hex()} for why, value in wrong.items()]
    header = make_messages()[6].encode()[:34]
    survivors = {
        "a bit after the last member": header + bytes([9, 0, 13, 3]),
        "more members than allowed": header + bytes([1, 4]) + bytes(129),
        "fewer bits than it says": header + bytes([9, 0, 13]),
    }
    vector = make_messages()[5].encode()[:66]
    cells = {
        "more cells than it has": vector + bytes([255, 255, 15, 0]) + bytes(64),
        "more cells than allowed": vector + bytes([1, 0, 16, 0]) + bytes(64),
    }
    found += [{"message": "Survivors", "why": why, "hex": value.hex()} for why, value in survivors.items()]
    return found + [{"message": "MaskedVector", "why": why, "hex": value.hex()} for why, value in cells.items()]


class FixedGroup(PeersGroup):
    """Members with fixed keys and seeds."""

    def __init__(self) -> None:
        operator = Operator(Ed25519PrivateKey.from_private_bytes(fill(32, 200)))
        keys = [Ed25519PrivateKey.from_private_bytes(fill(32, number)) for number in range(MEMBERS)]
        with mock.patch("sundog.tally.protocol.announcement.os.urandom", lambda count: fill(count, 99)):
            super().__init__(MEMBERS, operator=operator)
            self.identities = sorted(
                (Identity(key, issue_credential(key.public_key().public_bytes_raw(), operator.key)) for key in keys),
                key=lambda member: member.public_key,
            )
            self.open(self.parameters)

    def join(self, number: int) -> Any:
        with mock.patch("sundog.tally.protocol.peers_client.os.urandom", lambda count: fill(count, 150 + number)):
            return super().join(number)


def make_transcript() -> dict[str, Any]:
    """Return all messages of a round in which one member drops out before its vector arrives."""
    group, rest = FixedGroup(), [number for number in range(MEMBERS) if number != DROPPED]
    said: list[list[dict[str, str]]] = [[{"step": "join", "reply": client.reply.hex()}] for client in group.clients]
    total: Any = None
    group.advertise()
    for step, get in (
        ("share", group.tally.get_directory),
        ("mask", group.tally.get_delivered),
        ("endorse", lambda name: group.tally.get_survivors()),
        ("reveal", lambda name: group.tally.get_endorsements()),
    ):
        members = group.everybody if step == "share" else rest
        received = {number: get(group.name(number)).hex() for number in members}
        total = getattr(group, step)(members)
        for number in members:
            reply = group.clients[number].reply.hex()
            said[number].append({"step": step, "received": received[number], "reply": reply})
    members_json = [
        {
            "private_key": member.private_key.private_bytes_raw().hex(),
            "credential": member.credential.hex(),
            "seed": fill(32, 150 + number).hex(),
            "vector": to_json(group.vector(number)),
            "messages": said[number],
        }
        for number, member in enumerate(group.identities)
    ]
    operator, parameters = group.operator.public_key.hex(), group.parameters.encode().hex()
    return {"operator": operator, "parameters": parameters, "members": members_json, "sum": to_json(total)}


def make_seals() -> list[dict[str, Any]]:
    """Return seals for each of three keepers, with what is in them."""
    round_digest, identity, seeds = fill(32, 1), fill(32, 2), tuple(fill(32, 3 + part) for part in range(3))
    found = []
    for keeper in range(3):
        private, parties = fill(32, 30 + keeper), identity + fill(32, 40 + keeper)
        sealed = seal_seeds(seeds, keeper, compute_public_key(private), round_digest=round_digest, parties=parties)
        values = {"round": round_digest, "parties": parties, "private_key": private, "sealed": sealed}
        found.append({"keeper": keeper, **{name: value.hex() for name, value in values.items()}})
    parts = [
        {
            "part": part,
            "seed": seed.hex(),
            "commitment": commit_to_seed(seed, round_digest, part, identity).hex(),
            "mask_key": derive_part_mask(seed, round_digest, part, identity).hex(),
        }
        for part, seed in enumerate(seeds)
    ]
    return [{"identity": identity.hex(), "parts": parts}, *found]


def main() -> None:
    made = {"wire": make_wire(), "malformed": make_malformed(), "transcript": make_transcript(), "seals": make_seals()}
    for name, content in made.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
