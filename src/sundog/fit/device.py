"""Where networks train, as `--device` says it: on the processor or on a GPU."""

from __future__ import annotations

from sundog.errors import ArgumentError, SundogError

DEVICES = ("cpu", "cuda")


def check_device(device: str) -> None:
    """Raise if there is no device of this name, whatever the machine has.

    >>> check_device("gpu")
    Traceback (most recent call last):
    ...
    sundog.errors.ArgumentError: there is no device 'gpu'; choose cpu or cuda
    """
    if device not in DEVICES:
        raise ArgumentError(f"there is no device {device!r}; choose {' or '.join(DEVICES)}")


def refuse_missing_cuda() -> None:
    """Raise if this machine cannot train on a GPU."""
    import torch

    if not torch.cuda.is_available():
        raise SundogError(
            "device 'cuda': torch finds no CUDA device here; leave the device out, or install a build of torch for CUDA"
        )
