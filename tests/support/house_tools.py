"""The tools of a house, as its MCP servers list them."""

import stream

PLAYWRIGHT = [
    *("close", "resize", "console_messages", "handle_dialog", "evaluate", "file_upload", "fill_form", "install"),
    *("press_key", "type", "navigate", "navigate_back", "network_requests", "run_code", "take_screenshot", "snapshot"),
    *("click", "drag", "hover", "select_option", "tabs", "wait_for"),
]
BROWSER = [f"browser_{name}" for name in PLAYWRIGHT]
ZWAVE = ["get_zwave_nodes", "list_nodes", "get_device_state", "set_value", "ping", "heal_network"]


def listed(group, *names, call=None):
    schema = {"type": "object", "properties": {}}
    return [stream.Tool.of_mcp({"name": name, "inputSchema": schema}, call, group=group) for name in names]


HOUSE = [
    *listed("zwave", *ZWAVE),
    *listed("playwright", *BROWSER),
    *listed("custom", "get_current_datetime", "send_mail", "play_music"),
    *listed("filesystem", "list_directory", "read_file"),
]
