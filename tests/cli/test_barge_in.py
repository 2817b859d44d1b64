"""Ctrl-C while the assistant speaks: the first is the user's voice, the second ends the program."""

import asyncio
import os
import signal

import pytest

from cues.cli._turn import _barge_in_at_ctrl_c


class Session:
    n_interrupted = 0

    def barge_in(self):
        self.n_interrupted += 1


async def pressed(session, times):
    with _barge_in_at_ctrl_c(session):
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.01)


def test_the_first_ctrl_c_interrupts_the_answer():
    session = Session()
    asyncio.run(pressed(session, 1))
    assert session.n_interrupted == 1


def test_the_second_ctrl_c_ends_the_program():
    session = Session()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(pressed(session, 2))
    assert session.n_interrupted == 1
