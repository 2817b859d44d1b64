"""The browser of the tests in this folder."""

import pytest

from tests.support.chromium import chromium


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running
