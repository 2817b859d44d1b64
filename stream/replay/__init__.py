"""Recordings and scripts of model servers, and a server that replays them over HTTP. Read `recording` first."""
