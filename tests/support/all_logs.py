"""Everything that any logger of the process says, at every level, with what stands beside the message."""

import contextlib
import logging


class _Everything(logging.Handler):
    def __init__(self):
        super().__init__(level=1)
        self.records = []
        self.lines = []

    def emit(self, record):
        self.records.append(record)
        # Formatted now, as a handler would: what a record refers to may change. `extra` fields are in the dict.
        self.lines.append(f"{self.format(record)} {record.__dict__!r}")

    def of(self, name, level):
        """The messages of one logger at one level."""
        return [r.getMessage() for r in self.records if r.name == name and r.levelno == level]


@contextlib.contextmanager
def all_logs():
    """Listen to all loggers that there are, and to those that are made meanwhile."""
    root, heard = logging.getLogger(), _Everything()
    loggers = [one for one in (root, *logging.root.manager.loggerDict.values()) if isinstance(one, logging.Logger)]
    before = [(one, one.level, one.propagate, one.disabled) for one in loggers]
    for one in loggers:
        one.setLevel(1)
        one.propagate, one.disabled = True, False
    root.addHandler(heard)
    try:
        yield heard
    finally:
        root.removeHandler(heard)
        for one, level, propagate, disabled in before:
            one.setLevel(level)
            one.propagate, one.disabled = propagate, disabled
