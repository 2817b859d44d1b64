"""Run a test with the numpy loops and with the compiled ones."""

import pytest

from tests.support.mixing_scripts import mixing_with


@pytest.fixture(params=["numpy", "compiled"])
def loops(request):
    with mixing_with(request.param):
        yield request.param
