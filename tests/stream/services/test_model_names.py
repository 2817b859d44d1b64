"""Names of cloud models: what a user writes, what the local daemon takes, what the cloud's own API takes.

Forms of the daemon: github.com/ollama/ollama, internal/modelref (`NAME:TAG-cloud`, `NAME:cloud`, `NAME:TAG:cloud`).
"""

import pytest

import stream
from stream.errors import StreamValueError

NAMES = [
    # written                    local daemon               cloud API
    ("qwen3-coder:480b-cloud", "qwen3-coder:480b-cloud", "qwen3-coder:480b"),
    ("gpt-oss:120b-cloud", "gpt-oss:120b-cloud", "gpt-oss:120b"),
    ("glm-4.6:cloud", "glm-4.6:cloud", "glm-4.6"),
    ("kimi-k2:1t-cloud", "kimi-k2:1t-cloud", "kimi-k2:1t"),
    ("qwen3-vl:235b-instruct-cloud", "qwen3-vl:235b-instruct-cloud", "qwen3-vl:235b-instruct"),
    ("gpt-oss:20b:cloud", "gpt-oss:20b-cloud", "gpt-oss:20b"),
    ("qwen3-coder-480b-cloud", "qwen3-coder:480b-cloud", "qwen3-coder:480b"),
    ("qwen3-vl-235b-instruct-cloud", "qwen3-vl:235b-instruct-cloud", "qwen3-vl:235b-instruct"),
    ("glm-4.6-cloud", "glm-4.6:cloud", "glm-4.6"),
    ("qwen3-coder-480b", "qwen3-coder-480b", "qwen3-coder:480b"),
    ("deepseek-v3.1-671b", "deepseek-v3.1-671b", "deepseek-v3.1:671b"),
    ("qwen3-coder:480b", "qwen3-coder:480b", "qwen3-coder:480b"),
    ("kimi-k2-thinking", "kimi-k2-thinking", "kimi-k2-thinking"),
    ("ministral-3:14b", "ministral-3:14b", "ministral-3:14b"),
    ("my-cloud-model", "my-cloud-model", "my-cloud-model"),
    ("somebody/finetune-7b", "somebody/finetune-7b", "somebody/finetune-7b"),
    ("  llama3.2:3b ", "llama3.2:3b", "llama3.2:3b"),
]


@pytest.mark.parametrize(("written", "local", "cloud"), NAMES, ids=[name for name, _, _ in NAMES])
def test_a_name_is_written_as_each_side_expects_it(written, local, cloud):
    assert stream.services.normalize_model(written, "local") == local
    assert stream.services.normalize_model(written, "cloud") == cloud


@pytest.mark.parametrize("model", ["", "  ", None])
def test_an_empty_name_is_refused(model):
    with pytest.raises(StreamValueError, match="model"):
        stream.services.normalize_model(model, "local")
