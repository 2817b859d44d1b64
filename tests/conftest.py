"""Surroundings of every test: no pack and no cache of the user's, and the switch that rewrites the golden files."""

import contextlib

import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None)  # how long an example takes is a matter for the benches
settings.load_profile("suite")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/**/golden from what is measured now")


LONG = ("test_docs.py", "test_faults.py", "test_warm_up.py", "test_samples.py")


def pytest_collection_modifyitems(items):
    """Take the files with the longest tests first: at the end, they would let the other workers wait."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(autouse=True, scope="session")
def _own_surroundings(tmp_path_factory, request):
    """Users' settings stay out of the tests, and the tests out of the users' folders.

    Compiled kernels are kept from run to run, for all workers: they lie under a digest of their source.
    """
    folder = tmp_path_factory.mktemp("cache")
    with contextlib.suppress(OSError, AttributeError):  # without links or pytest's cache every worker compiles
        (folder / "kernels").symlink_to(request.config.cache.mkdir("kernels"), target_is_directory=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUES_PACK", "")
        patch.setenv("CUES_CACHE_DIR", str(folder))
        yield


@pytest.fixture
def update_golden(request):
    return request.config.getoption("--update-golden")
