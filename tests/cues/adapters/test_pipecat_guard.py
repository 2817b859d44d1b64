"""Pipecat's guard behind any LLM service: orders of frames, failures, custom tools, and what it leaves behind."""

import json
from dataclasses import dataclass

import pytest
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import AdapterType, ToolsSchema
from pipecat.frames.frames import (
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    LLMThoughtTextFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.services.llm_service import FunctionCallFromLLM, LLMService
from pipecat.services.settings import LLMSettings
from pipecat.utils.errors import ErrorCategory

from cues.adapters.pipecat import create
from stream.errors import StreamValueError
from tests.support.guarded_talks import Outcome, Voice
from tests.support.pipecat_pipeline import run_pipeline

CALL = '<tool_call>{"name": "dim", "arguments": {"percent": 40}}</tool_call>'
NATIVE = {"percent": 40}
PROPERTIES = {"percent": {"type": "integer"}, "slowly": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}
SCHEMA = {"type": "function", "function": {"name": "dim", "parameters": {"type": "object", "properties": PROPERTIES}}}
IN_TAGS = (
    "<tool_call>\n<function=dim>\n<parameter=percent>\n40\n</parameter>\n"
    "<parameter=slowly>\nFalse\n</parameter>\n</function>\n</tool_call>"
)
TYPED = {"percent": 40, "slowly": False}


@dataclass
class Thought:
    """A thought that the service itself tells from the text."""

    text: str


class Service(LLMService):
    """A service with an API of its own. In a round, texts are text, dicts calls, tuples batches; exceptions fail."""

    def __init__(self, rounds):
        super().__init__(settings=LLMSettings())
        self._rounds, self.ran = iter(rounds), []
        self.register_function("dim", self._dim)

    async def _dim(self, params):
        self.ran.append(dict(params.arguments))
        await params.result_callback("done")

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if not isinstance(frame, LLMContextFrame):
            await self.push_frame(frame, direction)
            return
        await self.push_frame(LLMFullResponseStartFrame())
        for number, step in enumerate(next(self._rounds)):
            if isinstance(step, str):
                await self.push_frame(LLMTextFrame(step))
            elif isinstance(step, Thought):
                await self.push_frame(LLMThoughtTextFrame(step.text))
            elif isinstance(step, dict | tuple):
                batch = enumerate(step if isinstance(step, tuple) else [step])
                calls = [FunctionCallFromLLM("dim", f"native_{number}_{n}", one, frame.context) for n, one in batch]
                await self.run_function_calls(calls)
            else:
                of_tool = ErrorCategory.APPLICATION if isinstance(step, RuntimeError) else None
                await self.push_error(error_msg=str(step), exception=step, category=of_tool)
        await self.push_frame(LLMFullResponseEndFrame())


def run(*rounds, offers=True, built_in=None, tool_choice=None, start="text", tools=None):
    """The service, what was spoken, and the mixer, after these rounds."""
    llm, outcome = Service(rounds), Outcome()
    llm.get_llm_adapter().builtin_tools.update(built_in or {})
    mixer, tap = create(tools=tools, start=start) if tools else create(llm=llm, start=start)
    context = LLMContext([{"role": "user", "content": "Dim it."}])
    if offers:
        context.set_tools(ToolsSchema([], custom_tools={AdapterType.OPENAI: [SCHEMA]}))
    if tool_choice:
        context.set_tool_choice(tool_choice)
    pair = LLMContextAggregatorPair(context)

    async def script(send, clock):
        await send(LLMContextFrame(context))
        await clock.sleep(10.0)

    run_pipeline(mixer, [pair.user(), llm, tap, Voice(outcome), pair.assistant()], script)
    return llm, outcome, mixer, context


@pytest.mark.parametrize(
    "steps",
    [[CALL], [CALL, NATIVE], [NATIVE, CALL], [CALL[:9], NATIVE, CALL[9:]]],
    ids=["text", "text first", "native first", "native amid the text"],
)
def test_a_call_runs_once_in_whatever_order_its_forms_come(steps):
    llm, outcome, mixer, context = run(["Yes. ", *steps], ["It is dark."])
    assert outcome.spoken == "Yes. It is dark."
    assert llm.ran == [NATIVE]
    assert sum(len(message.get("tool_calls") or ()) for message in context.get_messages()) == 1
    assert mixer.router.stats.played == 2  # the call and its success
    assert mixer.router.is_over


def test_two_calls_in_two_forms_run_both():
    llm, _, mixer, _ = run([CALL, {"percent": 60}], ["It is dark."])
    assert sorted(call["percent"] for call in llm.ran) == [40, 60]
    assert mixer.router.is_over


def test_a_service_that_tells_thoughts_apart_has_none_in_its_text():
    _, outcome, *_ = run([Thought("Hm."), "Yes. ", CALL], ["So.</think>It is dark."], start="reasoning")
    assert outcome.spoken == "Yes. It is dark."


@pytest.mark.parametrize("tools", [["dim"], iter(["dim"])], ids=["list", "iterator"])
def test_without_the_service_a_call_of_a_declared_tool_is_not_spoken(tools):
    _, outcome, mixer, _ = run(["Yes. ", "dim(percent=40)"], offers=False, tools=tools)
    assert outcome.spoken.strip() == "Yes."
    assert mixer.router.stats.played == 1


def test_tags_around_the_answer_after_such_thoughts_are_not_spoken():
    _, outcome, *_ = run([Thought("Hm."), "<answer>Yes.</answer> ", CALL], ["<answer>It is dark."])
    assert outcome.spoken == "Yes. <answer>It is dark."
    _, outcome, *_ = run([Thought("Hm."), "One moment. ", Thought("So."), "<answer>", "Yes.</answer>"])
    assert outcome.spoken == "One moment. Yes."


def test_an_unknown_start_raises():
    with pytest.raises(StreamValueError, match="start is 'thoughts'"):
        create(start="thoughts")


@pytest.mark.parametrize("other", [None, [1], "abc", 1], ids=repr)
def test_arguments_that_are_no_object_leave_the_other_calls_as_they_are(other):
    llm, _, mixer, _ = run([CALL, (NATIVE, other)], ["It is dark."])
    assert llm.ran == [NATIVE]
    assert mixer.router.stats.played == 3  # the calls, coalesced; the result; the error
    assert mixer.router.is_over


@pytest.mark.parametrize("text", [CALL, CALL[:9], CALL[:40]], ids=["whole", "marker", "half"])
def test_of_a_response_that_broke_off_nothing_runs_and_no_markup_is_spoken(text):
    llm, outcome, _, _ = run(["Yes. ", text, ConnectionError("gone")])
    assert (llm.ran, outcome.spoken) == ([], "Yes.")


NAMELESS = ['<tool_call>{"arguments": {"percent": 40}}</tool_call>', "[TOOL_CALLS] [{oops", '{"name": "dim']


@pytest.mark.parametrize("text", NAMELESS)
def test_a_call_in_the_text_whose_name_cannot_be_read_sounds_as_an_error(text):
    llm, outcome, mixer, _ = run(["Yes.\n", text])
    assert (llm.ran, outcome.spoken.strip()) == ([], "Yes.")
    assert [span.cue for span in mixer.router.spans] == ["error"]


@pytest.mark.parametrize("text", [*NAMELESS, "<tool_call>\n"])
def test_beside_a_call_of_the_service_it_is_what_the_server_left_of_that_call(text):
    llm, outcome, mixer, _ = run(["Yes.\n", text, NATIVE], ["It is dark."])
    assert (llm.ran, outcome.spoken.replace("\n", " ")) == ([NATIVE], "Yes. It is dark.")
    assert [span.cue for span in mixer.router.spans] == ["tool_call", "success"]


@pytest.mark.parametrize("before", [[], [NATIVE]], ids=["at once", "after a tool"])
def test_a_model_that_fails_sounds_as_an_error(before):
    *_, mixer, _ = run(*([[step] for step in before]), [ConnectionError("gone")])
    assert [span.cue for span in mixer.router.spans][-1] == "error"


def test_a_tool_of_before_that_fails_breaks_off_no_response():
    llm, outcome, *_ = run(["Yes. ", RuntimeError("of a tool in the background"), CALL], ["It is dark."])
    assert (llm.ran, outcome.spoken) == ([NATIVE], "Yes. It is dark.")


@pytest.mark.parametrize(
    "options", [{"offers": False}, {"tool_choice": "none"}], ids=["no tools", "no tool may be called"]
)
def test_a_registered_tool_that_the_request_does_not_offer_does_not_run(options, caplog):
    llm, outcome, mixer, _ = run(["Yes. ", CALL], **options)
    assert (llm.ran, outcome.spoken) == ([], "Yes.")
    assert "does not run: 'dim' (not offered)" in caplog.text
    assert mixer.router.is_over


def test_a_tool_that_the_service_adds_to_each_request_by_itself_runs():
    """Such as Pipecat's `cancel_…` of a tool with `cancellable_by_llm`, and the `delegate` of its `LLMWithBackend`."""
    llm, outcome, *_ = run(
        ["Yes. ", CALL], ["It is dark."], offers=False, built_in={"dim": FunctionSchema("dim", "", {}, [])}
    )
    assert (llm.ran, outcome.spoken) == ([NATIVE], "Yes. It is dark.")


def test_text_goes_on_as_the_frames_that_came_where_nothing_is_in_it():
    texts = ["It", " is", " dark", ". 3 < 4", " and {so on}."]
    _, outcome, _, _ = run(texts)
    assert outcome.texts[:3] == texts[:3]
    assert outcome.spoken == "".join(texts)


def test_text_whose_beginning_was_not_announced_is_guarded():
    outcome = Outcome()
    mixer, tap = create()

    async def script(send, clock):
        for frame in (LLMTextFrame("One. "), LLMTextFrame(CALL), LLMFullResponseEndFrame()) * 2:
            await send(frame)
        await clock.sleep(1.0)

    run_pipeline(mixer, [tap, Voice(outcome)], script)
    assert outcome.spoken == "One. One."


def test_a_text_that_is_not_for_the_voice_stays_so():
    seen = []

    class Kept(Voice):
        async def process_frame(self, frame, direction):
            if isinstance(frame, LLMTextFrame):
                seen.append((frame.text, frame.skip_tts))
            await super().process_frame(frame, direction)

    llm = Service([["Yes. ", f"So {CALL}be it."], ["Done."]])
    llm._skip_tts = True
    mixer, tap = create(llm=llm)
    context = LLMContext([], ToolsSchema([], custom_tools={AdapterType.OPENAI: [SCHEMA]}))

    async def script(send, clock):
        await send(LLMContextFrame(context))
        await clock.sleep(2.0)

    run_pipeline(mixer, [llm, tap, Kept(Outcome())], script)
    assert {skipped for _, skipped in seen} == {True}
    assert json.dumps([text for text, _ in seen]).count("tool_call") == 0


@pytest.mark.parametrize(
    "steps", [(IN_TAGS,), (IN_TAGS, TYPED), (TYPED, IN_TAGS)], ids=["text", "text first", "text last"]
)
def test_values_in_tags_have_the_types_of_the_schema_and_are_no_other_call_than_the_services(steps):
    llm, outcome, _, _ = run(steps, ["Done."])
    assert llm.ran == [TYPED]
    assert outcome.spoken.strip() == "Done."


@pytest.mark.parametrize("marker", ["<function", "<tool_call>", "[TOOL_CALLS]"])
def test_a_marker_that_a_server_leaves_in_the_text_beside_its_call_is_not_spoken(marker):
    llm, outcome, _, _ = run(["Sure.\n" + marker, NATIVE], ["Done."])
    assert llm.ran == [NATIVE]
    assert marker not in outcome.spoken
