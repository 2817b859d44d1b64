"""Adapters for existing pipelines, one module each: Pipecat, LiveKit Agents, FastRTC, telephone lines and unmute.

Read `_pipeline_cues` first, then `_paced` (for FastRTC, LiveKit and telephone lines). An adapter may import both
packages; nothing imports an adapter.
"""

from __future__ import annotations

__all__ = ["fastrtc", "livekit", "pipecat", "telephony", "unmute"]
