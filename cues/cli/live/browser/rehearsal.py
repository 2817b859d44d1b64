"""A turn that nobody hears, before the first page opens."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING

from cues.cli.live.browser.answers import served
from cues.cli.live.browser.conversation import Conversation, Setup
from cues.cli.live.scripts import demo_script
from stream.clock import WallClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from cues.library.bank import Bank

__all__ = ["rehearse"]

_SPEED = 100.0


async def rehearse(bank: Callable[[], Bank]) -> None:
    """Answer one question fast and unheard.

    The first turn of a process imports modules and compiles patterns, 0.1 s at a time; so does a collection of all that
    was imported. The event loop of all pages would stand still for as long.
    """
    script = replace(demo_script(), tool_s=0.0, tokens_per_s=10.0 * _SPEED)
    async with served([script]) as targets:
        setup = Setup(targets=targets, bank=bank, speaker="voice-like")
        async with Conversation(setup, WallClock(_SPEED)) as conversation:
            conversation.ask(script.prompt)
            await conversation.answered()
    gc.collect()
    gc.freeze()
