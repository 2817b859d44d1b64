"""Whole words for text-to-speech, and events in their places among them."""

import asyncio
import itertools
import math
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream import (
    Finish,
    InvalidToolCall,
    OllamaReader,
    OpenAIReader,
    ReasoningDelta,
    TaskStatus,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    Usage,
    words,
    words_sync,
)
from stream.errors import StreamTypeError
from tests.support.virtual_loop import run_virtually

CALL = ToolCallStart("lock", "", 0)
PARTING = [
    CALL,
    ToolCallEnd("lock"),
    ToolCallEnd("lock", status="incomplete"),
    ToolCallEnd("lock", status="malformed"),
    InvalidToolCall("lock", "", 0, "unknown_tool", "there is no such tool"),
    ToolResult(tool_name="lock", tool_call_id="", is_error=False, content="done"),
    TaskStatus("1", "working"),
    Finish("tool_calls"),
]
PASSING = [ReasoningDelta("hm"), Usage(total_tokens=3)]


def texts(*events, **options):
    return [event.text if isinstance(event, TextDelta) else event for event in words_sync(events, **options)]


def spoken(events, **options):
    return "".join(event.text for event in words_sync(events, **options) if isinstance(event, TextDelta))


def test_space_before_a_word_belongs_to_it():
    assert texts(TextDelta("Good mor"), TextDelta("ning, "), TextDelta("Ada.")) == ["Good", " morning,", " Ada."]


def test_run_of_white_space_is_one_space_even_over_deltas():
    assert texts(TextDelta("a \n"), TextDelta("\t b")) == ["a", " b"]


def test_other_event_flushes_and_passes_at_once_with_no_space_lost():
    assert texts(TextDelta("Let me see. "), CALL, TextDelta("Done now")) == [
        "Let", " me", " see.", CALL, " Done", " now",
    ]  # fmt: skip
    assert texts(TextDelta("Hi"), CALL, TextDelta(" there"), Finish("stop")) == ["Hi", CALL, " there", Finish("stop")]


@pytest.mark.parametrize("event", PARTING, ids=lambda event: f"{type(event).__name__} {getattr(event, 'status', '')}")
def test_a_space_stands_where_a_call_its_result_or_the_end_of_a_round_parted_two_words(event):
    assert texts(TextDelta("Let me check that"), event, TextDelta("Two files."))[-3:] == [event, " Two", " files."]


def test_between_the_words_of_an_answer_that_calls_again_and_again_is_one_space_each():
    check = [TextDelta("Let me check that"), CALL, ToolCallEnd("lock"), Finish("tool_calls")]
    assert spoken([*check, *check, TextDelta("\n\nTwo files.")]) == "Let me check that Let me check that Two files."


def test_no_space_begins_an_answer_ends_it_or_is_doubled():
    assert texts(CALL, ToolCallEnd("lock"), TextDelta("Two")) == [CALL, ToolCallEnd("lock"), "Two"]
    assert texts(TextDelta("\n Two ")) == ["Two"]
    assert texts(TextDelta(" "), CALL, TextDelta(" Two")) == [CALL, "Two"]
    assert texts(TextDelta("that \n"), CALL, TextDelta(" \nTwo"), CALL) == ["that", CALL, " Two", CALL]


@pytest.mark.parametrize("mark", [".", ",", "?)", "..."])
def test_a_punctuation_mark_after_a_call_stays_with_the_word_before_it(mark):
    assert spoken([TextDelta("Let me check"), CALL, TextDelta(f"{mark} Two")]) == f"Let me check{mark} Two"
    assert spoken([TextDelta("Look at"), CALL, TextDelta(".env")]) == "Look at .env"


@pytest.mark.parametrize("event", PASSING, ids=lambda event: type(event).__name__)
def test_reasoning_and_usage_hold_no_word_back_and_put_no_space_into_it(event):
    assert texts(TextDelta("So: Hel"), event, TextDelta("lo there")) == ["So:", " Hel", event, "lo", " there"]
    assert spoken([TextDelta("3.1"), event, event, TextDelta("4"), event]) == "3.14"
    assert spoken([TextDelta("that"), event, CALL, event, TextDelta("Two")]) == "that Two"


@pytest.mark.parametrize("event", PASSING, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("end", [".", "!", "?\u201d", "\u2026**", "\u3002"])
def test_reasoning_and_usage_after_a_sentence_part_it_from_the_next_one(event, end):
    assert texts(TextDelta(f"I think{end}"), event, TextDelta("Two")) == ["I", f" think{end}", event, " Two"]


def test_channel_stays_with_its_words():
    events = list(words_sync([TextDelta("a b", "text"), TextDelta("c", "json")], silent_channels=()))
    assert events == [TextDelta("a", "text"), TextDelta(" b", "text"), TextDelta(" c", "json")]


def test_data_for_a_program_is_no_word_unless_it_is_asked_for():
    answer = [TextDelta("Here is"), TextDelta('{"plan": [1]}', "json"), TextDelta("the plan", "text"), Finish("stop")]
    assert texts(*answer) == ["Here", " is", " the", " plan", Finish("stop")]
    assert texts(*answer, silent_channels=()) == [
        "Here", " is", ' {"plan":', " [1]}", " the", " plan", Finish("stop"),
    ]  # fmt: skip
    assert texts(*answer, silent_channels={"text", "json"}) == ["Here", " is", Finish("stop")]


def test_one_name_in_place_of_a_collection_of_channels_is_refused():
    with pytest.raises(StreamTypeError, match=r"silent_channels is 'json'.*\('json',\)"):
        list(words_sync([], silent_channels="json"))


UNSPACED = {
    "chinese": ["今天北京的天气很", "好。", "气温是二十五度，", "适合出去散步。"],
    "quoted": ["他说：", "「你好。」", "然后走了。"],
    "japanese": ["きょうはちょっと", "いいですね。", "価格は３，０００", "円です！"],
    "thai": ["วันนี้อา", "กาศดีมาก", "ครับเดิน", "เล่น"],
    "khmer": ["ថ្ងៃនេះអា", "កាសធាតុល្អ", "ណាស់។", "បាទ"],
    "words of others inside": ["我用Python", "写代码,", "看https://example.org/a", "吧", " 10：30", " 开始"],
    "a variant of a character": ["葛\U000e0100城市の辻\U000e0101さ", "んはどこですか？"],
    "korean has spaces": ["오늘", " 날씨는아주아주아주좋습니다.", " 네"],
}


@pytest.mark.parametrize("pieces", UNSPACED.values(), ids=UNSPACED)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_script_without_spaces_comes_up_to_its_punctuation_or_a_few_characters_at_a_time(pieces, size):
    text = "".join(pieces)
    assert texts(*cut([TextDelta(text)], size)) == pieces


def test_a_script_without_spaces_does_not_wait_for_one():
    deltas = [TextDelta(character) for character in "今天很好。明天也好。" * 20]
    waits = [n for n, event in enumerate(words_sync(itertools.chain(deltas, [CALL]))) if event is CALL]
    assert waits == [40]
    first, rest = iter(deltas), []
    events = words_sync(rest.append(delta) or delta for delta in first)
    assert next(events) == TextDelta("今天很好。")
    assert len(rest) == len("今天很好。") + 1


PIECES = st.lists(
    st.one_of(
        st.text(alphabet="ab.,! \n", min_size=1, max_size=12).map(TextDelta),
        st.text(alphabet="a {}", min_size=1, max_size=6).map(lambda text: TextDelta(text, "json")),
        st.sampled_from([CALL, ToolCallEnd("lock"), Finish("stop"), *PASSING]),
    ),
    max_size=12,
)


def cut(events, size):
    """The same stream, its texts in deltas of `size` characters."""
    for event in events:
        if isinstance(event, TextDelta):
            yield from (TextDelta(event.text[at : at + size], event.channel) for at in range(0, len(event.text), size))
        else:
            yield event


@given(PIECES, st.integers(1, 5))
def test_words_do_not_depend_on_how_the_text_is_cut_into_deltas(events, size):
    assert texts(*cut(events, size)) == texts(*events)


@given(st.lists(st.text(alphabet="a1今あょ。，」「.วัเ็ \n", min_size=1, max_size=20).map(TextDelta)), st.integers(1, 5))
def test_no_cut_makes_a_difference_in_scripts_without_spaces_and_no_letter_is_lost(events, size):
    assert texts(*cut(events, size)) == texts(*events)
    assert spoken(events) == " ".join("".join(event.text for event in events).split())


@given(PIECES)
def test_no_letter_is_lost_and_two_spaces_never_meet(events):
    said = spoken(events, silent_channels=())
    sent = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert "".join(said.split()) == "".join(sent.split())
    assert said == " ".join(said.split())


@given(PIECES)
def test_what_is_for_the_ear_is_the_same_whether_or_not_the_data_is_asked_for(events):
    asked = [event for event in words_sync(events, silent_channels=()) if getattr(event, "channel", None) != "json"]
    said = "".join(event.text for event in asked if isinstance(event, TextDelta))
    assert re.sub(r"[.,!]", "", said).split() == re.sub(r"[.,!]", "", spoken(events)).split()
    assert [e for e in asked if not isinstance(e, TextDelta)] == [e for e in texts(*events) if not isinstance(e, str)]


@given(st.lists(st.sampled_from(["a", "b a", " ", "\n", CALL, Finish("stop"), *PASSING]), max_size=12))
def test_words_are_parted_where_white_space_or_a_call_stands_and_nowhere_else(stream):
    events = [TextDelta(piece) if isinstance(piece, str) else piece for piece in stream]
    written = "".join(piece if isinstance(piece, str) else "" if piece in PASSING else " " for piece in stream)
    assert spoken(events) == " ".join(written.split())


RAW_CALL = '<tool_call>{"name": "lock", "arguments": {"door": "a b"}}</tool_call>'
ANSWERS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.text(alphabet="ab.,! \n", min_size=1, max_size=8)),
        st.sampled_from([("text", RAW_CALL), ("json", '{"plan": [1, 2]}'), ("call", "")]),
    ),
    min_size=1,
    max_size=6,
)


def sent_by(endpoint, answer, size):
    """The messages of a server that sends its text `size` characters at a time."""
    for n, (kind, text) in enumerate(answer):
        function = {"name": "lock", "arguments": f'{{"door": {n}}}' if endpoint == "openai" else {"door": n}}
        call = {"tool_calls": [{"id": f"c{n}", "index": n, "type": "function", "function": function}]}
        pieces = [{"content": text[at : at + size]} for at in range(0, len(text), size)]
        for message in [call] if kind == "call" else pieces:
            mark = {"kind": kind} if kind != "call" else {}
            if endpoint == "openai":
                yield {"choices": [{"index": 0, "delta": message, "finish_reason": None}], **mark}
            else:
                yield {"message": {"role": "assistant", "content": "", **message}, "done": False, **mark}


@pytest.mark.parametrize(("endpoint", "make"), [("openai", OpenAIReader), ("ollama", OllamaReader)])
@given(answer=ANSWERS, size=st.integers(1, 5))
def test_from_the_servers_chunks_to_the_words_no_cut_makes_a_difference(endpoint, make, answer, size):
    def said(size):
        reader = make()
        events = [event for message in sent_by(endpoint, answer, size) for event in reader.feed(message)]
        return texts(*events, *reader.close())

    whole = said(1000)
    assert said(size) == whole
    written = "".join(text if kind == "text" and text != RAW_CALL else " " for kind, text in answer)
    spoken = "".join(item for item in whole if isinstance(item, str))
    assert re.sub(r"[.,!]", "", spoken).split() == re.sub(r"[.,!]", "", written).split()


@pytest.mark.parametrize("text", ["", "one", " one two  three "])
def test_asynchronous_twin_gives_the_same(text):
    async def source():
        for char in text:
            yield TextDelta(char)
        yield CALL
        yield TextDelta("after")

    async def collect():
        return [event async for event in words(source())]

    assert asyncio.run(collect()) == list(words_sync([*map(TextDelta, text), CALL, TextDelta("after")]))


def told_in_time(*steps, **options):
    """(seconds, text or event) of what comes out, for (seconds before it, event)."""

    async def source():
        for after_s, event in steps:
            await asyncio.sleep(after_s)
            yield event

    async def collect():
        now = asyncio.get_running_loop().time
        return [(round(now(), 3), getattr(event, "text", event)) async for event in words(source(), **options)]

    return run_virtually(collect)


def test_a_pause_yields_the_word_held_back_and_its_rest_has_no_space():
    steps = (0.0, TextDelta("Let me")), (0.1, TextDelta(" see.")), (5.0, CALL), (0.0, TextDelta("Rei"))
    assert told_in_time(*steps, (0.6, TextDelta("kja vik"))) == [
        (0.0, "Let"), (0.1, " me"), (0.6, " see."), (5.1, CALL), (5.6, " Rei"), (5.7, "kja"), (5.7, " vik"),
    ]  # fmt: skip
    assert told_in_time(*steps, pause_s=math.inf)[2:4] == [(5.1, " see."), (5.1, CALL)]


def test_a_word_is_not_parted_by_a_pause_of_the_one_who_takes_the_events():
    async def source():
        yield TextDelta("Rei")
        yield CALL
        yield TextDelta("kja")
        await asyncio.sleep(0.2)
        yield TextDelta("vik ")

    async def collect():
        got = []
        async for event in words(source()):
            got.append(getattr(event, "text", event))
            await asyncio.sleep(3.0)
        return got

    assert run_virtually(collect) == ["Rei", CALL, " kjavik"]


def test_an_error_while_the_source_is_closed_is_raised():
    async def source():
        try:
            yield CALL
            yield CALL
        finally:
            raise ZeroDivisionError

    async def leave_early():
        events = words(source())
        await anext(events)
        with pytest.raises(ZeroDivisionError):
            await events.aclose()

    run_virtually(leave_early)


def test_a_word_that_comes_slowly_stays_one():
    assert told_in_time(*((0.4, TextDelta(piece)) for piece in ("Rei", "kja", "vik ", "3", ".", "1"))) == [
        (1.2, "Reikjavik"), (2.4, " 3.1"),
    ]  # fmt: skip


def test_the_source_is_asked_for_an_event_only_when_one_is_wanted():
    asked = []

    async def source():
        for number in range(3):
            asked.append(number)
            yield CALL

    async def ask():
        events = words(source())
        for number in range(3):
            await anext(events)
            await asyncio.sleep(1.0)
            assert asked[-1] == number

    run_virtually(ask)


@pytest.mark.parametrize("stop", ["cancelled", "closed"])
def test_the_source_is_closed_where_words_is_stopped_in_a_pause(stop):
    closed = []

    async def source():
        try:
            yield TextDelta("Hi")
            await asyncio.sleep(99.0)
        finally:
            await asyncio.sleep(0.1)
            closed.append(True)

    async def leave():
        events = words(source())
        assert await anext(events) == TextDelta("Hi")
        if stop == "closed":
            await events.aclose()
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(events), 1.0)
        assert closed

    run_virtually(leave)


class Source:
    """A stream without an end that says whether it was closed."""

    closed = False

    def __iter__(self):
        return itertools.repeat(TextDelta("one two "))

    async def __aiter__(self):
        for event in self:
            yield event

    def close(self):
        self.closed = True

    async def aclose(self):
        self.closed = True


def test_the_source_is_closed_on_an_early_stop():
    async def leave_early(events):
        await anext(events)
        await events.aclose()

    one, other = Source(), Source()
    events = words_sync(one)
    next(events)
    events.close()
    asyncio.run(leave_early(words(other)))
    assert one.closed
    assert other.closed


def test_halves_of_a_surrogate_pair_become_a_character_and_a_lonely_one_can_be_encoded():
    told = list(words_sync([TextDelta("ha \ud83d"), TextDelta("\ude00! so \ud83d it")]))
    assert [event.text for event in told] == ["ha", " \U0001f600!", " so", " \ufffd", " it"]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_word_without_an_end_comes_in_parts_and_stays_one_word(size):
    text = "Look: " + "あ\ud83d\ude00x" * 2000 + " Done."
    deltas = [TextDelta(text[start : start + size]) for start in range(0, len(text), size)]
    parts = [event.text for event in words_sync(deltas)]
    assert "".join(parts) == "Look: " + "あ😀x" * 2000 + " Done."
    assert max(map(len, parts)) <= 1025 + size


def test_text_without_spaces_is_not_kept():
    deltas = (TextDelta("a" * 64) for _ in range(1 << 16))
    tracemalloc.start()
    for _ in words_sync(deltas):
        pass
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 18
