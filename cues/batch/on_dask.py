"""Tasks on a Dask cluster."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from cues.batch.tasks import Outcome, Task, failed, run_tasks
from cues.errors import CueError
from cues.extras import needed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["check_dask", "run_on_dask"]

_AHEAD, _CHUNK = 3, 16
"""Chunks that wait for each worker, and tasks in a chunk."""
_RETRIES = 2
_CONNECT_S = 10.0


def run_on_dask(tasks: Sequence[Task], address: str) -> Iterator[list[Outcome]]:
    """Outcomes of all tasks, in order of completion, from the workers of the scheduler at `address`.

    The workers need the same files and this package. If one dies, Dask retries its tasks on another one, and gives up
    on tasks that killed several. A scheduler that cannot be reached or has no workers raises `CueError`.
    """
    distributed = check_dask()
    try:
        client = distributed.Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError, TimeoutError) as error:
        raise CueError(f"no Dask scheduler at {address}: {str(error) or 'no answer'}") from error
    with client:
        workers = sum(client.nthreads().values())
        if not workers:
            raise CueError(f"the Dask scheduler at {address} has no workers")
        # Single tasks first: an interrupt in the first seconds keeps what is done.
        first = workers * _AHEAD
        whole = (tuple(tasks[start : start + _CHUNK]) for start in range(first, len(tasks), _CHUNK))
        chunks = itertools.chain(((task,) for task in tasks[:first]), whole)
        held: dict[Any, tuple[Task, ...]] = {}

        def submit(some: tuple[Task, ...]) -> Any:
            future = client.submit(run_tasks, some, pure=False, retries=_RETRIES)
            held[future] = some
            return future

        queue = distributed.as_completed([submit(some) for some in itertools.islice(chunks, first)])
        for future in queue:
            some = held.pop(future)
            yield _outcomes(future, some)
            for following in itertools.islice(chunks, 1):
                queue.add(submit(following))


def check_dask() -> Any:
    """The module `distributed`; `MissingFeatureError` if it is not installed."""
    return needed("distributed", "batch", "a cluster needs Dask")


def _outcomes(future: Any, tasks: tuple[Task, ...]) -> list[Outcome]:
    try:
        outcomes: list[Outcome] = future.result()
    except OSError:
        raise  # a full disk
    except Exception as error:  # noqa: BLE001  (any error on the cluster fails this chunk only)
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        return [failed(task, f"the cluster gave up on it: {reason}") for task in tasks]
    return outcomes
