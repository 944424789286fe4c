from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from sundog.errors import ReleaseError
from sundog.release import signing
from sundog.release.signing import (
    Signature,
    check,
    compute_fingerprint,
    generate_key,
    load_private_key,
    load_public_key,
    sign,
)

DIGEST = "ab" * 32
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def test_key_pair_round_trip(tmp_path: Path) -> None:
    name = generate_key(tmp_path / "key.pem", tmp_path / "key.pub")
    private, public = load_private_key(tmp_path / "key.pem"), load_public_key(tmp_path / "key.pub")
    signature = sign(DIGEST, private)
    assert check(DIGEST, signature)
    assert check(DIGEST, signature, public_key=public)
    assert not check(DIGEST, signature, public_key=KEY.public_key())
    assert compute_fingerprint(public) == compute_fingerprint(signature.public_key) == name


def test_private_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        generate_key(tmp_path / "key.pem", tmp_path / "key.pub")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600


def test_signature_is_fixed() -> None:
    """Ed25519 is deterministic, so a change of the signed message shows here."""
    assert sign(DIGEST, KEY).value == KEY.sign(b"sundog release v1\n" + DIGEST.encode()).hex()
    assert compute_fingerprint(KEY.public_key()) == "5647 5aa7 5463 474c 0285 df5d bf2b cab7"


@pytest.mark.parametrize("existing", ["key.pem", "key.pub"])
def test_nothing_is_overwritten_and_no_half_pair_stays(tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).write_text("precious")
    with pytest.raises(ReleaseError, match=f"{existing}: exists already"):
        generate_key(tmp_path / "key.pem", tmp_path / "key.pub")
    assert [path.name for path in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "precious"


def test_one_name_for_both_halves_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="exists already"):
        generate_key(tmp_path / "key.pem", tmp_path / "key.pem")
    assert not list(tmp_path.iterdir())


def test_key_in_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"key\.pem: cannot be written \(No such file or directory\)"):
        generate_key(tmp_path / "nowhere" / "key.pem", tmp_path / "key.pub")


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_no_key_stays_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fail(_: int) -> None:
        raise failure

    monkeypatch.setattr(signing.os, "fsync", fail)  # type: ignore[attr-defined]
    with pytest.raises((ReleaseError, KeyboardInterrupt)):
        generate_key(tmp_path / "key.pem", tmp_path / "key.pub")
    assert not list(tmp_path.iterdir())


PUBLIC_PEM = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
PRIVATE_PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
ENCRYPTED_PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret"))
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
RSA_PEM = RSA_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
RSA_PUBLIC_PEM = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    ("load", "content", "message"),
    [
        (load_private_key, b"", "not a private key"),
        (load_private_key, b"\x00\xff" * 100, "not a private key"),
        (load_private_key, PUBLIC_PEM, "not a private key"),
        (load_private_key, PRIVATE_PEM[:60], "not a private key"),
        (load_private_key, ENCRYPTED_PEM, "the key is encrypted; give the unencrypted PEM file"),
        (load_private_key, RSA_PEM, "a private key of another kind"),
        (load_private_key, b"x" * 100_000, "too large for a key"),
        (load_public_key, b"", "not a public key"),
        (load_public_key, PRIVATE_PEM, "not a public key"),
        (load_public_key, RSA_PUBLIC_PEM, "a public key of another kind"),
    ],
)
def test_what_is_not_the_key_is_one_line(
    tmp_path: Path, load: Callable[[Path], object], content: bytes, message: str
) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    with pytest.raises(ReleaseError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("load", [load_private_key, load_public_key])
def test_missing_folder_pipe_and_endless_name(tmp_path: Path, load: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in [
        (tmp_path / "none.pem", "no such file"),
        (tmp_path, "not a file"),
        (tmp_path / "pipe", "not a file"),
        (tmp_path / ("x" * 300), "cannot be read"),
    ]:
        with pytest.raises(ReleaseError, match=message):
            load(path)


GOOD = sign(DIGEST, KEY)


@pytest.mark.parametrize(
    ("digest", "signature"),
    [
        ("cd" * 32, GOOD),
        (DIGEST.upper(), GOOD),
        (DIGEST + "\n", GOOD),
        ("é" * 64, GOOD),
        (DIGEST, Signature(GOOD.public_key, "00" * 64)),
        (DIGEST, Signature("00" * 32, GOOD.value)),
        (DIGEST, Signature("ff" * 32, GOOD.value)),
        (DIGEST, Signature(GOOD.public_key.upper(), GOOD.value)),
        (DIGEST, Signature(GOOD.public_key, GOOD.value[:-1])),
        (DIGEST, Signature(GOOD.public_key, GOOD.value + "\n")),
        (DIGEST, Signature(GOOD.public_key, f" {GOOD.value[1:]}")),
        (DIGEST, Signature("", "")),
        (DIGEST, Signature(GOOD.public_key, GOOD.value, algorithm="none")),
    ],
)
def test_every_other_signature_is_false(digest: str, signature: Signature) -> None:
    assert check(digest, signature) is False


# --- keys that vouch for anything ---

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]


def add(a: Point, b: Point) -> Point:
    """On the curve −x² + y² = 1 + d·x²·y² (RFC 8032), by its definition."""
    (x1, y1), (x2, y2) = a, b
    product = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, P) % P
    return x, (y1 * y2 + x1 * x2) * pow(1 - product, -1, P) % P


def decode(y: int) -> Point | None:
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(square, (P + 3) // 8, P)
    for x in (root, root * pow(2, (P - 1) // 4, P) % P):
        if x * x % P == square:
            return x, y % P
    return None


def multiply_by_eight(y: int) -> Point | None:
    point = decode(y)
    for _ in range(3):
        point = None if point is None else add(point, point)
    return point


# Found by doubling: the torsion points are multiples of one of order 8, and so have these y, in every spelling.
SMALL_YS = sorted(signing._SMALL_ORDER)
SPELLINGS = [
    (y + carry | sign << 255).to_bytes(32, "little")
    for y in SMALL_YS
    for carry in (0, P)
    for sign in (0, 1)
    if y + carry < 2**255
]


def test_the_points_of_small_order_are_those_that_vanish_eightfold() -> None:
    assert all(multiply_by_eight(y) == (0, 1) for y in SMALL_YS)
    base = 4 * pow(5, -1, P) % P
    assert multiply_by_eight(base) not in (None, (0, 1))
    # All of them: for each y two x, but for the neutral element and the point of order two.
    assert sum(1 if y in (1, P - 1) else 2 for y in SMALL_YS) == 8


@pytest.mark.parametrize("raw", SPELLINGS, ids=bytes.hex)
def test_a_key_of_small_order_vouches_for_nothing(raw: bytes, tmp_path: Path) -> None:
    neutral = bytes([1, *[0] * 31])
    forged = Signature(public_key=raw.hex(), value=(neutral + bytes(32)).hex())  # R = 0, s = 0: holds for anything
    for digest in ("ab" * 32, "cd" * 32):
        assert not check(digest, forged)
    try:
        key = Ed25519PublicKey.from_public_bytes(raw)
    except ValueError:
        return
    path = tmp_path / "small.pub"
    path.write_bytes(key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(ReleaseError, match="small order"):
        load_public_key(path)


def test_the_library_itself_takes_the_neutral_element_for_a_key() -> None:
    """Why this is asked here: without the check one signature holds for everything."""
    neutral = bytes([1, *[0] * 31])
    Ed25519PublicKey.from_public_bytes(neutral).verify(neutral + bytes(32), b"whatever")


def test_only_content_hashes_are_signed() -> None:
    with pytest.raises(ValueError, match="not a content hash"):
        sign("hello", KEY)


def test_signature_round_trip() -> None:
    assert Signature.from_dict(GOOD.to_dict()) == GOOD


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": "rsa"}, "unknown kind, 'rsa'; upgrade"),
        ({"algorithm": None}, "malformed"),
        ({"algorithm": ["ed25519"]}, "malformed"),
        ({"value": 7}, "malformed"),
        ({"value": "00"}, "malformed"),
        ({"public_key": "zz" * 32}, "malformed"),
        ({"more": "x"}, "malformed"),
    ],
)
def test_malformed_signatures_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        Signature.from_dict({**GOOD.to_dict(), **change})
