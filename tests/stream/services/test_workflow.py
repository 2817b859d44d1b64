"""All services together, from the question to the answer."""

import stream
from stream.events import ToolCallStart
from tests.support.model_server import BOTH, TOOLS, Files, chat, says


@BOTH
def test_the_whole_workflow_detects_translates_checks_runs_and_answers(endpoint):
    exchange = chat(
        "ollama-two-calls",
        endpoint=endpoint,
        model="qwen3:8b",
        options={"guide": True},
        wrap=lambda c: stream.ToolRunner(stream.services.Recovery(c), TOOLS),
    )
    assert [result[:2] for result in sorted(exchange.results)] == [("list_directory", False), ("read_file", False)]
    assert exchange.text == "One of them says hello."
    assert [event.index for event in exchange.of(ToolCallStart)] == [0, 1]
    roles = [message["role"] for message in exchange.bodies[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]


def test_a_model_that_is_poor_over_several_rounds_is_given_fewer_of_them():
    again = says([["call", "read_file", {"path": "a"}]], [["call", "read_file", {"path": "a"}]])

    def requests(model, between):
        return len(chat(again, model=model, wrap=lambda c: stream.ToolRunner(between(c), TOOLS)).requests)

    def all_between(connection):
        return stream.services.ToolTiers(stream.services.Recovery(connection), classifier=Files())

    # `Recovery` asks once more, because the last one has a call in place of an answer.
    for between, wanted in ((lambda connection: connection, [3, 6, 9]), (all_between, [4, 7, 10])):
        assert [requests(model, between) for model in ("deepseek-chat", "qwen3:8b", "kimi-k2")] == wanted
