"""What every test runs in: no pack and no cache of the user's, and the switch that rewrites the golden files."""

from __future__ import annotations

import pytest


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/**/golden from what is measured now")


@pytest.fixture(autouse=True, scope="session")
def _own_surroundings(tmp_path_factory):
    """Users' settings stay out of the tests, and the tests out of the users' folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUES_PACK", "")
        patch.setenv("CUES_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def update_golden(request):
    return request.config.getoption("--update-golden")
