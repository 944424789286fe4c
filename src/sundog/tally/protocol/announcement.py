"""The parameters of a round: announced by the operator, checked by everybody else."""

from __future__ import annotations

import os

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sundog.errors import TallyError
from sundog.tally.protocol.identity import NO_SIGNATURE, check_signature, sign
from sundog.tally.wire.codecs import MOST_CELLS
from sundog.tally.wire.round_parameters import KEEPERS, PEERS, RoundParameters


def announce_peers(
    operator: Ed25519PrivateKey, *, period: int, cells: int, minimum: int, purpose: bytes = bytes(32)
) -> RoundParameters:
    """Return the signed parameters of a round of peers.

    >>> announce_peers(Ed25519PrivateKey.generate(), period=1, cells=4896, minimum=100).cells
    4896
    """
    return _announce(operator, PEERS, period, cells, minimum, purpose, (), 0)


def announce_keepers(
    operator: Ed25519PrivateKey,
    *,
    period: int,
    cells: int,
    minimum: int,
    keepers: tuple[bytes, ...],
    quorum: int = 2,
    purpose: bytes = bytes(32),
) -> RoundParameters:
    """Return the signed parameters of a round with three keepers, of which `quorum` must agree on the survivors.

    >>> names = (b"a" * 32, b"b" * 32, b"c" * 32)
    >>> announce_keepers(Ed25519PrivateKey.generate(), period=1, cells=9, minimum=100, keepers=names).quorum
    2
    """
    return _announce(operator, KEEPERS, period, cells, minimum, purpose, tuple(sorted(keepers)), quorum)


def _announce(
    operator: Ed25519PrivateKey,
    mode: int,
    period: int,
    cells: int,
    minimum: int,
    purpose: bytes,
    keepers: tuple[bytes, ...],
    quorum: int,
) -> RoundParameters:
    public, nonce = operator.public_key().public_bytes_raw(), os.urandom(32)
    fields = (mode, period, cells, minimum, purpose, keepers, quorum)
    return sign(RoundParameters(public, nonce, *fields, NO_SIGNATURE), operator)


def check_parameters(data: bytes, *, operator: bytes, mode: int) -> RoundParameters:
    """Return the parameters in a message; raise TallyError unless this operator signed them and they make sense."""
    parameters = RoundParameters.decode(data)
    if parameters.operator != operator:
        raise TallyError("a round was announced by another operator; it was refused")
    check_signature(parameters, operator)
    if parameters.mode != mode:
        raise TallyError(f"a round is of mode {parameters.mode} where {mode} belongs; it was refused")
    if not 0 < parameters.cells <= MOST_CELLS:
        raise TallyError(f"a round has {parameters.cells} cells, not 1 to {MOST_CELLS}; it was refused")
    if mode == KEEPERS:
        _check_keepers(parameters)
    elif parameters.keepers or parameters.quorum:
        raise TallyError("a round of peers names keepers; it was refused")
    return parameters


def _check_keepers(parameters: RoundParameters) -> None:
    if len(parameters.keepers) != 3 or list(parameters.keepers) != sorted(set(parameters.keepers)):
        raise TallyError("a round must name three different keepers in sorted order; it was refused")
    if parameters.quorum not in (2, 3):
        raise TallyError(f"a round has a quorum of {parameters.quorum} of three keepers, not 2 or 3; it was refused")
