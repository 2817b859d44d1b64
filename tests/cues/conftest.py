"""Run a test with the numpy loops and with the compiled ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cues.mixing.backends import selection
from cues.mixing.warmup import load_kernels

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["numpy", "compiled"])
def loops(request: pytest.FixtureRequest) -> Iterator[str]:
    before = selection.kernels()
    selection.install(load_kernels() if request.param == "compiled" else None)
    yield request.param
    selection.install(before)
