"""`cues/adapters/unmute.patch`, tried on unmute itself: its own server and handler, loopback servers, and a client.

    python -m bench.unmute_package PATH_TO_A_CHECKOUT_OF_UNMUTE

Needs Python 3.12 with unmute's own dependencies, pytest and pytest-asyncio in the versions of its `uv.lock` (a later
gradio breaks its fastrtc), and this project. The patch is applied to a copy of the checkout, which is to be 84aa28d;
unmute's own tests and its example script run in it. Then a client talks to its server as the browser does, a session
for each kind of turn. Prints a line for each claim, and exits with 1 if one does not hold. One tool runs for 35 s.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.unmute_servers import METRICS, RATE, Ear, Server, Session, Voice, servers  # noqa: E402
from cues.mixing.backends import selection  # noqa: E402
from stream import Limits  # noqa: E402
from stream.services import FILESYSTEM_TOOLS  # noqa: E402
from tests.support.unmute_model import AFTER, BEFORE, Model, answer, called, recording, refusal, said  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

PATCH = ROOT / "cues/adapters/unmute.patch"
LONG_TOOL_S = 35.0  # Longer than the 30 s after which moshi-server closes a silent connection.
TOOL_S = 4.0
MOST_LATE_MS = 301.0  # Of what is emitted ahead, and so of a cue over speech; 1 ms for the clocks.
SECRET = "hunter2-TOPSECRET"

failed: list[str] = []


def claim(text: str, holds: object, seen: object = "") -> None:
    """Print a claim, and what was seen where it does not hold."""
    print(f"  ok      {text}" if holds else f"  FAILED  {text}: {seen!r}", flush=True)
    if not holds:
        failed.append(text)


def equal(text: str, seen: object, wanted: object) -> None:
    claim(text, seen == wanted, seen)


# The files.


def copied(checkout: Path, folder: Path) -> Path:
    """A copy of the checkout in `folder`."""
    ignored = shutil.ignore_patterns(".git", "node_modules", "__pycache__", "volumes")
    return Path(shutil.copytree(checkout, folder, ignore=ignored))


def patched(checkout: Path, folder: Path) -> None:
    """Copy the checkout and apply the patch, by both commands."""
    print("The patch")
    other = copied(checkout, folder.with_name("other"))
    by_git = run("git", "apply", str(PATCH), cwd=copied(checkout, folder))
    by_patch = run("patch", "-p1", "-i", str(PATCH), cwd=other)
    claim("git apply takes it", by_git.returncode == 0, by_git.stderr)
    exact = by_patch.returncode == 0 and not re.search("offset|fuzz", by_patch.stdout)
    claim("patch -p1 takes it, without fuzz", exact, by_patch.stdout)
    names = re.findall(r"^\+\+\+ b/(\S+)$", PATCH.read_text(encoding="utf-8"), re.MULTILINE)
    claim("both make the same files", all((folder / n).read_bytes() == (other / n).read_bytes() for n in names), names)
    tests = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    outcomes = [run(*tests, cwd=where) for where in (checkout, folder)]
    passed = [re.findall(r"\d+ passed", outcome.stdout) for outcome in outcomes]
    claim("unmute's own tests pass, as without it", passed[0] and passed[0] == passed[1], outcomes[1].stdout)


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{cwd}:{ROOT}"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, check=False)


async def example_script(folder: Path, model: Model, llm: str) -> None:
    """Run unmute's own example of how to ask a model."""
    print("scripts/vllm_wrapper_example.py")
    model.says = recording(said(BEFORE))
    script = (sys.executable, "-m", "unmute.scripts.vllm_wrapper_example", "--server-url", llm)
    ran = await asyncio.to_thread(run, *script, cwd=folder)
    claim("it writes the answer", ran.returncode == 0 and ran.stdout.rstrip().endswith(BEFORE), ran)


# The turns.


async def plain(server: Server, model: Model, voice: Voice, _: Ear) -> Session:
    """A plain turn."""
    model.says = recording(said(BEFORE))
    session = await server.session()
    equal("the request has the filesystem tools", model.requests[0].get("tools"), FILESYSTEM_TOOLS)
    history_is(session, BEFORE)
    equal("the transcript has what was said", (session.ready, session.spoken), (BEFORE, BEFORE.split()))
    equal("response.text.done has it", session.of("response.text.done", "text"), [BEFORE])
    equal("no cue sounds, and no call is in the transcript", (session.cues, session.calls), ([], []))
    speech = np.trim_zeros(np.concatenate(voice.spoken).astype(np.float32))
    claim("the speech is emitted as it came", np.array_equal(np.trim_zeros(session.signal), speech))
    start = int(np.flatnonzero(session.signal)[0] - np.flatnonzero(np.concatenate(voice.spoken))[0])
    silence_ms = 1000.0 * (session.heard_s(start) - session.emitted_s(start))
    claim("no more than 35 ms of silence are to be heard before it", silence_ms <= 35.0, silence_ms)
    metrics_are(session, vllm_recv_words_total=11, vllm_reply_length_count=1)
    claim("the log has the count of words", "End of VLLM, after 11 words." in session.lines("unmute"))
    return session


async def tool(server: Server, model: Model, voice: Voice, _: Ear) -> Session:
    """A tool turn: a call between two words, and the server runs the tool."""
    text, arguments = "Let me check that Two files.", json.dumps({"path": SECRET})
    parts = [(0.0, {"content": "Let me check"}), (0.05, {"content": " that"})]
    model.says = recording([*parts, *called(0.5, arguments=arguments), *said("Two files.", 2.0)])
    session = await server.session()
    history_is(session, text)
    equal("the words around the call are apart", session.of("response.text.done", "text"), [text])
    equal("the transcript has the call", session.calls, [("read_file", arguments, "ok")])
    equal("one cue sounds", [span.cue for span in session.cues], ["tool_call"])
    start = session.cues[0].start_samples
    spoken = np.trim_zeros(np.concatenate(voice.spoken), "f")
    first = int(np.flatnonzero(session.signal)[0])  # silence may lie before the first word
    speech = np.pad(spoken, (first, len(session.signal)))[: len(session.signal)]
    onset = int(np.flatnonzero(np.abs(session.signal - speech) > 1e-4)[0])
    claim("up to the cue the speech is emitted as it came", 0 <= onset - start < 0.05 * RATE, (start, onset))
    late_ms = 1000.0 * (session.emitted_s(start) - session.known_s[0])
    claim(f"the cue comes with the next frame, {late_ms:.0f} ms after the call", late_ms < 100.0)
    heard_ms = 1000.0 * (session.heard_s(start) - session.known_s[0])
    claim(f"it is heard {heard_ms:.0f} ms after the call, for a client that plays at once", heard_ms < MOST_LATE_MS)
    metrics_are(session, vllm_recv_words_total=6, vllm_reply_length_count=1)
    claim("the log names the tool", 'Tool call: read_file({"path": "str"})' in session.lines(), session.lines("cues"))
    equal("no value of an argument is in the log", [line for line in session.lines() if SECRET in line], [])
    return session


async def calls_left_open(server: Server, model: Model, _voice: Voice, _ear: Ear) -> Session:
    """A stream that ends with calls, one of which cannot be read."""
    unreadable = called(0.8, "list_directory", '{"path": }', index=1)
    model.says = recording([*said(BEFORE), *called(0.6), *unreadable], finish="tool_calls")
    session = await server.session(more_s=5.0)
    history_is(session, BEFORE)
    wanted = [("read_file", "ok"), ("list_directory", "malformed")]
    equal("the transcript has both", [(name, status) for name, _, status in session.calls], wanted)
    claim("the log warns", "Tool call: list_directory(no JSON), malformed" in session.lines("cues"))
    equal("nothing sounds after response.audio.done", session.sounds(session.times("response.audio.done")[0] + 0.1), [])
    return session


async def failing(server: Server, model: Model, _voice: Voice, _ear: Ear) -> Session:
    """A failed model: the connection breaks in a call."""
    model.says = recording([*said(BEFORE), *called(1.2)[:-1]], finish=None)
    session = await server.session()
    is_an_error(session)
    equal("the text before the fault went to the voice", session.ready, BEFORE)
    heard = session.spoken
    claim("the transcript has what was heard of it", heard[:5] == BEFORE.split()[:5], heard)
    history_is(session, " ".join(heard))
    equal("the call is incomplete in the transcript", [status for _, _, status in session.calls], ["incomplete"])
    return session


async def refused(server: Server, model: Model, _voice: Voice, _ear: Ear) -> Session:
    """A failed model: the request is refused."""
    model.says = refusal(401, "no such key")
    session = await server.session()
    is_an_error(session)
    claim("the log says why", any("no such key" in line for line in session.lines("unmute.main_websocket")))
    equal("the history is empty", session.history, [])
    return session


async def without_tools(server: Server, model: Model, _voice: Voice, _ear: Ear) -> Session:
    """A server that refuses the tools."""
    model.says, model.without_tools = refusal(400, "loopback does not support tools"), recording(said(BEFORE))
    session = await server.session()
    equal("it is asked again without them", ["tools" in request for request in model.requests], [True, False])
    history_is(session, BEFORE)
    claim("the log warns", any(r.levelname == "WARNING" and r.name.startswith("cues") for r in session.logs))
    metrics_are(session, vllm_recv_words_total=11, vllm_reply_length_count=1)
    return session


async def long_tool(server: Server, model: Model, voice: Voice, _: Ear) -> Session:
    """A long tool: 35 s."""
    model.says = answer(tool_s=LONG_TOOL_S)
    session = await server.session()
    open_ = voice.pongs >= 3 and not voice.dropped
    claim(f"the client answers the text-to-speech's pings ({voice.pongs}); the connection stays open", open_)
    history_is(session, f"{BEFORE} {AFTER}")
    equal("the transcript has what came after the tool", session.spoken, f"{BEFORE} {AFTER}".split())
    names = [span.cue for span in session.cues]
    claim("the tool is heard to work", names[0] == "tool_call" and set(names[1:]) == {"working"}, names)
    heard_s = session.times("response.text.delta")[len(BEFORE.split()) - 1]
    claim("what was said before the call is heard while it runs", heard_s < session.known_s[0] + LONG_TOOL_S / 2)
    after_s = session.emitted_s(session.cues[1].start_samples) - heard_s
    claim(f"from {after_s:.1f} s after the last word", 3.0 <= after_s <= 5.0)
    heard_ms = 1000.0 * (session.heard_s(session.cues[0].start_samples) - session.known_s[0])
    claim(f"its cue is heard {heard_ms:.0f} ms after the call, over speech", heard_ms < MOST_LATE_MS)
    ahead_ms = 1000.0 * max(session.ahead_s)
    claim(f"before, in and after the pause {ahead_ms:.0f} ms are emitted ahead at most", ahead_ms < MOST_LATE_MS)
    metrics_are(session, vllm_recv_words_total=14, vllm_reply_length_count=1)
    return session


async def hangs(server: Server, model: Model, _voice: Voice, _ear: Ear) -> Session:
    """A model that hangs in a call, under limits of 6 s."""
    model.says = recording([*said(BEFORE), *called(1.2)], end_s=60.0)
    server.options = {"limits": Limits(model_s=6.0, tool_s=6.0)}
    session = await server.session()
    server.options = {}
    is_an_error(session)
    names = [span.cue for span in session.cues]
    equal("the tool is heard to work, until the error cue", names, ["tool_call", "working", "error"])
    return session


async def barge_in(server: Server, model: Model, _: Voice, ear: Ear) -> Session:
    """A barge-in while the tool runs and the voice speaks, and the turn after it."""
    model.says = answer()
    session, rest = await interrupted(server, ear, after_call_s=0.4, text=BEFORE)
    equal("then what the user said, and the next answer", rest, [("user", "Wait"), ("assistant", f"{BEFORE} {AFTER}")])
    seen = ([status for _, _, status in session.calls], [span.cue for span in session.cues])
    equal("each turn has its call and its cue", seen, (["ok"] * 2, ["tool_call"] * 2))
    words = len(session.of("unmute.response.text.delta.ready"))
    metrics_are(session, vllm_interrupt_total=1, vllm_recv_words_total=words, vllm_reply_length_count=2)
    return session


async def late_barge_in(server: Server, model: Model, _: Voice, ear: Ear) -> Session:
    """A barge-in into the answer that follows a tool: the voice has made all of it by then."""
    model.says = answer(after=BEFORE, tool_s=TOOL_S)
    session, _ = await interrupted(server, ear, after_call_s=TOOL_S + 1.5, text=f"{BEFORE} {BEFORE}")
    return session


async def interrupted(server: Server, ear: Ear, *, after_call_s: float, text: str) -> tuple[Session, list[Any]]:
    """A turn that the user interrupts, so long after its call, and what its history has after the interruption."""
    cut_s = []

    async def interrupt(session: Session) -> None:
        await session.called.wait()
        await asyncio.sleep(after_call_s)
        cut_s.append(session.now_s())
        ear.pause = 0.0
        ear.words.append("Wait")
        await asyncio.sleep(1.2)
        ear.pause = 0.9

    session = await server.session(during=interrupt)
    told_s = session.times("unmute.interrupted_by_vad")[0]
    claim(f"the client hears of it after {(told_s - cut_s[0]) * 1000:.0f} ms", told_s - cut_s[0] < 0.5)
    equal("100 ms later it is silent", session.sounds(told_s + 0.1, session.times("response.created")[1]), [])
    (_, first), *rest = session.history
    heard = first.removesuffix("—").strip()
    claim("the history has what was heard", heard and text.startswith(heard) and first.endswith("—"), first)
    return session, rest


def history_is(session: Session, text: str) -> None:
    equal("the history has what was said, and nothing of a call", session.history, [("assistant", text)])


def metrics_are(session: Session, **wanted: float) -> None:
    expected = {name: float(wanted.get(name, 0.0)) for name in METRICS}
    equal(f"metrics: {', '.join(f'{name} +{value}' for name, value in wanted.items())}", session.metrics, expected)


def is_an_error(session: Session) -> None:
    counts = {"vllm_recv_words_total": len(session.ready.split()), "vllm_reply_length_count": 1}
    metrics_are(session, vllm_hard_errors_total=1, hard_errors_total=1, **counts)
    errors = [r.getMessage() for r in session.logs if r.name == "unmute.main_websocket" and r.exc_info]
    claim("unmute logs the error", len(errors) == 1 and "ModelError" in errors[0], errors)
    equal("the answer is not done", session.of("response.text.done"), [])
    equal("the client gets the error", [event["error"]["type"] for event in session.of("error")], ["fatal"])
    cue = next(span for span in reversed(session.cues) if span.cue == "error")
    early_s = session.times("error")[0] - session.emitted_s(cue.end_samples - 1)
    claim(f"{early_s * 1000:.0f} ms after its cue was emitted", early_s > 0.0)


TURNS: tuple[Callable[..., Coroutine[Any, Any, Session]], ...] = (
    plain, tool, calls_left_open, failing, refused, without_tools, long_tool, hangs,
    barge_in, late_barge_in,
)  # fmt: skip


async def converse(folder: Path) -> None:
    """All sessions, one after the other."""
    model, voice, ear, kinds = Model(recording(said(BEFORE))), Voice(), Ear(), set[str]()
    async with servers(model, voice=voice, ear=ear) as (stt, tts, llm):
        os.environ |= {"KYUTAI_STT_URL": stt, "KYUTAI_TTS_URL": tts, "KYUTAI_LLM_URL": llm}
        os.environ["KYUTAI_LLM_MODEL"] = "loopback"
        await example_script(folder, model, llm)
        async with Server() as server:
            claim("the mixer is warm before the first session", selection.kernels() is not None)
            for turn in TURNS:
                print((turn.__doc__ or "").rstrip("."))
                model.without_tools, voice.pongs = None, 0
                model.requests.clear()
                voice.spoken.clear()
                try:
                    session = await turn(server, model, voice, ear)
                    kinds |= {event["type"] for _, event in session.events}
                except Exception as error:  # noqa: BLE001  (the other turns count, too)
                    claim("the turn has all its parts", holds=False, seen=error)
    print("The frontend")
    source = (folder / "frontend/src/app/Unmute.tsx").read_text(encoding="utf-8")
    unknown = sorted(kind for kind in kinds if f'"{kind}"' not in source)
    claim(f"Unmute.tsx knows all {len(kinds)} types of events that came", not unknown, unknown)


def main(checkout: Path) -> int:
    """Patch a copy, and let it speak."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "unmute"
        patched(checkout, folder)
        sys.path.insert(0, str(folder))
        asyncio.run(converse(folder))
    print(f"{len(failed)} claims do not hold" if failed else "All claims hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
