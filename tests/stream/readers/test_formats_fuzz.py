"""A few hundred of the streams of `bench.stream_formats_fuzz`: no promise broken."""

import random

import pytest

from bench.stream_formats_fuzz import broken_promise


@pytest.mark.parametrize("seed", range(8))
def test_mixed_spoilt_and_cut_messages_break_no_promise(seed):
    for number in range(60):
        assert broken_promise(random.Random(f"test {seed}:{number}")) is None
