"""Adapters for existing pipelines, one module each; `README.md` lists them.

Read `_pipeline_cues` first, then `_paced` (for all but Pipecat). An adapter may import both
packages; nothing imports an adapter.
"""

__all__ = [
    "agents_sdk",
    "agents_voice",
    "audiosocket",
    "fastrtc",
    "livekit",
    "pipecat",
    "realtime",
    "telephony",
    "unmute",
]
