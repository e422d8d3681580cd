"""Tests of studies run as all others do: offline, with shapes checked, and with the pretrained default model."""

from tests.conftest import minilm

__all__ = ["minilm"]
