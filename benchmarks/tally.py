"""The tally's protocols beside the text's (Fig. 4.1), in the same run: CPU time of clients and tally, and bytes.

Clients are measured by everything they do: keys, shares, signatures, checks of all others' signatures, masks. Bytes of
peers are what a client sends and receives, those of keepers its one message. `unmask` is for the worst case: all who
drop out do so after they have sent their shares.

python benchmarks/tally.py [--quick] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import shamirs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from report import Row, parse_arguments, publish, time_interleaved
from tally_text.text_protocol import TextUser

from sundog.tally.protocol.agreement import Agreement, compute_public_key
from sundog.tally.protocol.announcement import announce_keepers, announce_peers
from sundog.tally.protocol.client_memory import ClientMemory
from sundog.tally.protocol.directory_log import DirectoryLog
from sundog.tally.protocol.identity import Identity, issue_credential
from sundog.tally.protocol.keeper import Keeper
from sundog.tally.protocol.keepers_client import KeepersTerms, contribute
from sundog.tally.protocol.mask_stream import MaskStream
from sundog.tally.protocol.peers_client import PeersClient
from sundog.tally.protocol.peers_secrets import derive_pair_mask
from sundog.tally.protocol.peers_tally import PeersTally
from sundog.tally.protocol.shamir import ELEMENTS, expand_elements, reconstruct_secrets
from sundog.tally.thresholds import compute_threshold
from sundog.tally.wire.codecs import Vector

CELLS = 4896  # 18 × 272, the sketch of the text
ALL_PAIRS = 700**2 // 2  # what the sketch of the text replaces
CURVE = [(100, CELLS), (300, CELLS), (100, ALL_PAIRS)]  # users and cells, as in Figs. 4.2 to 4.4
TEXT = "text, Fig. 4.1"
ROUND = b"1"


def enrol(operator: Ed25519PrivateKey) -> Identity:
    key = Ed25519PrivateKey.generate()
    return Identity(key, issue_credential(key.public_key().public_bytes_raw(), operator))


@dataclass
class Measured:
    """CPU seconds of each client, step by step, and the bytes that one client receives and sends."""

    seconds: dict[int, float] = field(default_factory=dict)
    received: int = 0
    sent: int = 0

    def do(self, number: int, act: Callable[[], bytes], received: bytes = b"") -> bytes:
        """Do a client's step; count the bytes of the first client."""
        started = time.process_time()
        reply = act()
        self.seconds[number] = self.seconds.get(number, 0.0) + time.process_time() - started
        if number == 0:
            self.received += len(received)
            self.sent += len(reply)
        return reply


def run_peers(size: int, cells: int, dropped: int) -> tuple[Measured, float]:
    """Run a round in which the last users drop out before their vectors; return the seconds of unmasking, too."""
    operator = Ed25519PrivateKey.generate()
    name = operator.public_key().public_bytes_raw()
    identities = sorted((enrol(operator) for _ in range(size)), key=lambda identity: identity.public_key)
    keys = [identity.public_key for identity in identities]
    parameters = announce_peers(operator, period=1, cells=cells, minimum=3)
    announced = parameters.encode()
    tally, measured, clients = PeersTally(parameters), Measured(), []
    for number, identity in enumerate(identities):

        def join(identity: Identity = identity) -> bytes:
            memory = ClientMemory()
            clients.append(PeersClient.join(identity, announced, operator=name, memory=memory, minimum_group=3))
            return clients[-1].reply

        tally.add_advertisement(measured.do(number, join, announced))
    tally.close_advertisements(DirectoryLog())
    vector, rest = np.ones(cells, dtype=np.uint32), range(size - dropped)

    def ask(
        members: Iterable[int], get: Callable[[bytes], bytes], act: Callable[..., bytes], *more: Vector
    ) -> list[bytes]:
        received = {number: get(keys[number]) for number in members}
        return [
            measured.do(number, lambda n=number, m=message: act(clients[n], m, *more), message)  # type: ignore[misc]
            for number, message in received.items()
        ]

    for reply in ask(range(size), tally.get_directory, PeersClient.share):
        tally.add_shares(reply)
    tally.close_shares()
    for reply in ask(rest, tally.get_delivered, PeersClient.mask, vector):
        tally.add_vector(reply)
    tally.close_vectors()
    for reply in ask(rest, lambda _: tally.get_survivors(), PeersClient.endorse):
        tally.add_endorsement(reply)
    tally.close_endorsements()
    for reply in ask(rest, lambda _: tally.get_endorsements(), PeersClient.reveal):
        tally.add_reveal(reply)
    started = time.process_time()
    total = tally.close_reveals()
    seconds = time.process_time() - started
    assert (total == size - dropped).all()
    return measured, seconds


def run_keepers(clients: int, cells: int) -> Measured:
    """Let clients contribute; the bytes include what each receives."""
    operator, keys = Ed25519PrivateKey.generate(), [Ed25519PrivateKey.generate() for _ in range(3)]
    name, keepers = operator.public_key().public_bytes_raw(), [key.public_key().public_bytes_raw() for key in keys]
    announced = announce_keepers(operator, period=1, cells=cells, minimum=3, keepers=tuple(keepers)).encode()
    replies = [Keeper.open(key, announced, operator=name, memory=ClientMemory()).reply for key in keys]
    measured, vector = Measured(), np.ones(cells, dtype=np.uint32)
    for number in range(clients):
        identity, terms = enrol(operator), KeepersTerms(name, frozenset(keepers), minimum=3)

        def send(identity: Identity = identity, terms: KeepersTerms = terms) -> bytes:
            return contribute(identity, announced, replies, vector, terms=terms, memory=ClientMemory())[0]

        measured.do(number, send, announced + b"".join(replies))
    return measured


def measure_text(users: int, cells: int) -> tuple[float, float]:
    """Return the CPU seconds of one user of the text: to encrypt, and to recover with 30% dropped."""
    everybody = [TextUser(number) for number in range(users)]
    keys = {user.number: user.public_key for user in everybody}
    online = range(users - int(0.3 * users))
    started = time.process_time()
    everybody[0].encrypt(np.ones(cells, dtype=np.uint32), keys, ROUND)
    middle = time.process_time()
    everybody[0].recover(keys, online, cells, ROUND)
    return middle - started, time.process_time() - middle


def mask_once(users: int, cells: int) -> float:
    """Return the CPU seconds of masking alone: agreements, keys and streams against all others, as in the text."""
    private = os.urandom(32)
    keys = [compute_public_key(os.urandom(32)) for _ in range(users - 1)]
    total, started = np.ones(cells, dtype=np.uint32), time.process_time()
    agreement, masks = Agreement(private), MaskStream(cells)
    for number, key in enumerate(keys):
        mask = derive_pair_mask(agreement.agree(key), ROUND, private, key)
        (masks.add if number % 2 else masks.subtract)(total, mask)
    return time.process_time() - started


def sum_vectors(count: int, cells: int) -> tuple[float, float]:
    """Return the CPU seconds of a sum in place, and of the text's: cell by cell, in a loop (for 20 vectors, scaled)."""
    vectors = [np.frombuffer(os.urandom(4 * cells), dtype=np.uint32) for _ in range(count)]

    def add() -> None:
        total = np.zeros(cells, dtype=np.uint32)
        for vector in vectors:
            total += vector

    few = [vector.tolist() for vector in vectors[:20]]

    def add_in_loops() -> None:
        total = [0] * cells
        for vector in few:
            for cell, value in enumerate(vector):
                total[cell] = (total[cell] + value) % 2**32

    seconds = time_interleaved({"ours": add, "text": add_in_loops}, repeats=3, clock=time.process_time)
    return seconds["ours"], seconds["text"] * count / len(few)


def reconstruct(size: int) -> tuple[float, float]:
    """Return the CPU seconds of reconstructing the secrets of a whole group, and of one of 127 bits with shamirs."""
    threshold = compute_threshold(size)
    helpers = np.arange(1, threshold + 1)
    shares = expand_elements(os.urandom(32), threshold * size * ELEMENTS).reshape(threshold, size, ELEMENTS)
    theirs = shamirs.shares(1, size, modulus=2**127 - 1, threshold=threshold)[:threshold]
    seconds = time_interleaved(
        {
            "ours": lambda: reconstruct_secrets(helpers, shares),
            "shamirs": lambda: shamirs.interpolate(theirs, threshold=threshold),
        },
        repeats=3,
        clock=time.process_time,
    )
    return seconds["ours"], seconds["shamirs"]


def measure_curve(points: Iterable[tuple[int, int]]) -> Iterable[Row]:
    """Compare masking and sums at several numbers of users and cells."""
    for users, cells in points:
        what = f"{users}" if cells == CELLS else f"{users}, {cells:,} cells"
        text, _ = measure_text(users, cells)
        summing, text_summing = sum_vectors(users, cells)
        yield Row(f"mask/{what}", 1e3 * mask_once(users, cells), "ms", TEXT, 1e3 * text)
        yield Row(f"sum/{what}", 1e3 * summing, "ms", f"{TEXT}, in Python", 1e3 * text_summing)


def main() -> None:
    options = parse_arguments(__doc__ or "")
    size, users, cells = (30, 30, 200) if options.quick else (300, 1000, CELLS)
    dropped = int(0.3 * size)
    peers, unmasking = run_peers(size, cells, dropped)
    keepers = run_keepers(5 if options.quick else 50, cells)
    text_group, text_recovery = measure_text(size, cells)
    text_all, _ = measure_text(users, cells)
    masking = statistics.median(mask_once(users, cells) for _ in range(3))
    summing, text_summing = sum_vectors(users, cells)
    ours, theirs = reconstruct(size)
    client = statistics.median(peers.seconds[number] for number in range(size - dropped))
    text_bytes = 32 + 32 * size + 2 * 4 * cells  # its key, all keys, the vector, and the vector of a recovery
    keepers_cpu = statistics.median(keepers.seconds.values())
    everybody_recovers = text_recovery * (size - dropped)
    publish(
        [
            Row(f"peers-client-cpu/{size}", 1e3 * client, "ms", TEXT, 1e3 * (text_group + text_recovery)),
            Row("keepers-client-cpu", 1e3 * keepers_cpu, "ms", TEXT, 1e3 * text_group),
            Row(f"mask/{users}", 1e3 * masking, "ms", TEXT, 1e3 * text_all),
            Row(f"peers-bytes/{size}", peers.received + peers.sent, "bytes", TEXT, text_bytes),
            Row("keepers-bytes", keepers.sent, "bytes", TEXT, text_bytes),
            Row(
                f"unmask/{size}/30%",
                1e3 * unmasking,
                "ms",
                f"{TEXT}, all users",
                1e3 * everybody_recovers,
            ),
            Row(f"sum/{users}", 1e3 * summing, "ms", f"{TEXT}, in Python", 1e3 * text_summing),
            Row("keepers-bytes-received", keepers.received, "bytes", f"{TEXT}, all keys", 32 * size),
            Row(f"reconstruct/{size}", 1e3 * ours, "ms", "shamirs, one secret", 1e3 * theirs),
            *measure_curve([] if options.quick else CURVE),
        ],
        options,
    )


if __name__ == "__main__":
    main()
