"""Adapters for existing pipelines, one module each: Pipecat, LiveKit Agents, FastRTC and unmute.

Read `_pipeline_cues` first, then `_paced` (for FastRTC and LiveKit). An adapter may import both packages; nothing
imports an adapter.
"""

from __future__ import annotations

__all__ = ["fastrtc", "livekit", "pipecat", "unmute"]
