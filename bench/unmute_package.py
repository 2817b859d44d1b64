"""The change for unmute, tried on unmute itself: its own handler on loopback servers that speak its protocols.

    python bench/unmute_package.py PATH_TO_A_CHECKOUT_OF_UNMUTE

Needs Python 3.12 with unmute's own dependencies, in the versions of its `uv.lock` (a later gradio breaks its fastrtc),
and this project. Applies the patch of `cues/adapters/README.md` to a copy of the package, lets the handler respond with
a tool call in mid-sentence, once with cues and once without, and once interrupted, and prints what was emitted.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RATE = 24000


def patched(checkout: Path, folder: Path) -> None:
    """A copy of the package with the page's change in it."""
    shutil.copytree(checkout / "unmute", folder / "unmute")
    for name in ("voices.yaml",):
        shutil.copy(checkout / name, folder / name)
    page = (ROOT / "cues/adapters/README.md").read_text(encoding="utf-8")
    patch = re.search(r"```diff\n(.*?)```", page, re.DOTALL)
    assert patch
    subprocess.run(["patch", "-p1", "-d", str(folder)], input=patch.group(1), text=True, check=True)


async def respond(with_cues: bool, interrupt_s: float | None = None, seconds: float = 6.0) -> dict:
    """One response of the real handler."""
    from unmute.unmute_handler import UnmuteHandler

    from cues.adapters.unmute import UnmuteCues
    from tests.support.unmute_loopback import Listener

    handler = UnmuteHandler()
    if not with_cues:
        handler.cues = UnmuteCues(bank={})
    known = []
    handle = handler.cues.handle

    def noted(event: object) -> None:
        if type(event).__name__ == "ToolCallStart":
            known.append(asyncio.get_running_loop().time())
        handle(event)

    handler.cues.handle = noted
    async with handler:
        await handler.start_up()
        listener = Listener(handler)
        listening = asyncio.create_task(listener.listen())
        handler.chatbot.chat_history.append({"role": "user", "content": "What do you know about birds?"})
        await handler._generate_response()
        if interrupt_s is not None:
            await asyncio.sleep(interrupt_s - listener.now_s())
            await handler.interrupt_bot()
        await asyncio.sleep(seconds - listener.now_s())
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    history = [m["content"] for m in handler.chatbot.chat_history if m["role"] == "assistant"]
    return {"listener": listener, "known_s": [at - listener.start_s for at in known], "history": history}


async def run() -> None:
    """All three responses, one after the other, and what they show."""
    spoken = await respond(True)
    plain = await respond(False)
    cut = await respond(True, interrupt_s=1.2)
    a, b = spoken["listener"].signal, plain["listener"].signal
    n = min(len(a), len(b))
    onset = int(np.flatnonzero(np.abs(a[:n] - b[:n]) > 1e-4)[0])
    ends = np.cumsum([len(frame) for _, frame in spoken["listener"].frames])
    frame_s = spoken["listener"].frames[int(np.searchsorted(ends, onset, side="right"))][0]
    calls = [(item.tool_name, item.arguments) for _, item in spoken["listener"].events("unmute.tool_call")]
    late = [frame for at_s, frame in cut["listener"].frames if at_s > 1.3]
    print(f"transcript events of calls: {calls}")
    print(f"call known at {spoken['known_s'][0]:.3f} s, its cue emitted at {frame_s:.3f} s")
    print(f"emitted: {len(a) / RATE:.2f} s with cues, {len(b) / RATE:.2f} s without (silence in the tool's pause)")
    print(f"chat history: {spoken['history']}")
    print(f"chat history when interrupted at 1.2 s: {cut['history']}")
    print(
        f"loudest sample later than 100 ms after the interruption: {max([0.0, *[np.abs(f).max() for f in late]]):.6f}"
    )


def main(checkout: Path) -> None:
    """Patch a copy, start the servers, import the package from the copy, and run."""
    sys.path.insert(0, str(ROOT))
    from tests.support.unmute_loopback import answer, servers

    async def go() -> None:
        async with servers(answer()) as (stt, tts, llm):
            urls = {"KYUTAI_STT_URL": stt, "KYUTAI_TTS_URL": tts, "KYUTAI_LLM_URL": llm, "KYUTAI_LLM_MODEL": "loopback"}
            os.environ.update(urls)
            await run()

    with tempfile.TemporaryDirectory() as folder:
        patched(checkout, Path(folder))
        sys.path.insert(0, folder)
        asyncio.run(go())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
