"""Pipecat logs to the terminal on its own; tests want to read nothing there."""

from loguru import logger

logger.remove()
