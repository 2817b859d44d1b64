"""The programs in `samples/` run, each in a process of its own, and what they write has cues and an answer in it.

`tests/fastrtc` runs FastRTC's.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

SAMPLES = Path(__file__).parents[3] / "samples"
PROGRAMS = {
    "agents_voice": ["tool_call", "success"],
    "asterisk_call": ["tool_call"],
    "livekit_agent": ["tool_call", "success"],
    "own_loop": ["tool_call", "success"],
    "pipecat_bot": ["tool_call", "success"],
    "realtime_talk": ["tool_call", "success"],
    "realtime_talk --agents": ["tool_call", "success"],
    "twilio_call": ["tool_call"],
}


@pytest.mark.parametrize(("name", "expected"), PROGRAMS.items(), ids=PROGRAMS)
def test_a_program_runs_by_itself_and_writes_what_is_heard(name, expected, tmp_path):
    out = tmp_path / "out.wav"
    program, *options = name.split()
    command = [sys.executable, str(SAMPLES / f"{program}.py"), *options, "--loopback", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=SAMPLES.parent, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    sounded = [line.split(" at ")[0] for line in done.stdout.splitlines() if " at " in line]
    assert [cue for cue in sounded if cue != "working"] == expected
    samples, rate = soundfile.read(out)
    assert rate == (8000 if name.endswith("_call") else 24000)
    loud = np.count_nonzero(np.abs(samples) > 0.05) / rate
    assert 0.3 < loud < 10.0
    assert np.abs(samples).max() < 1.0
