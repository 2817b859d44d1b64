"""What it takes to use cues in a pipeline that exists: one module each for Pipecat, LiveKit Agents, FastRTC and unmute.

An adapter is a composition root: it may import both packages, and nothing imports it.
"""

from __future__ import annotations

__all__ = ["fastrtc", "livekit", "pipecat", "unmute"]
