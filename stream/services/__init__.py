"""Clients of model servers, with tools and retries: read `connection`, then `runner`, `recovery` and `tiers`.

All have the same `chat` (`source.ChatSource`), so they nest.
"""

from stream.services.addresses import normalize_model
from stream.services.attempts import Attempts
from stream.services.connection import Connection, connect
from stream.services.filesystem import FILESYSTEM_TOOLS, filesystem_tools
from stream.services.models import ModelCapabilities, capabilities_of
from stream.services.recovery import Fallback, Recovery
from stream.services.repairing_client import repairing_client, repairing_client_sync
from stream.services.retrying import Retries
from stream.services.runner import ToolRunner
from stream.services.tiers import KeywordClassifier, Tier, ToolTiers, load_tiers
from stream.services.tool import Tool
from stream.services.validation import Validator

__all__ = [
    "FILESYSTEM_TOOLS",
    "Attempts",
    "Connection",
    "Fallback",
    "KeywordClassifier",
    "ModelCapabilities",
    "Recovery",
    "Retries",
    "Tier",
    "Tool",
    "ToolRunner",
    "ToolTiers",
    "Validator",
    "capabilities_of",
    "connect",
    "filesystem_tools",
    "load_tiers",
    "normalize_model",
    "repairing_client",
    "repairing_client_sync",
]
