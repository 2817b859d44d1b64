from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

import cues
from cues.cli.live import picture
from cues.cli.live.picture import draw_turn, ducking_db
from cues.show.audition import over_speech, stand_in_speech
from stream.events import TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.session.turn_record import HeardWord, Seen, Sounded, TurnRecord

RATE = 24000
SPEECH = stand_in_speech(RATE)
WORDS = ("let", "me", "look", "that", "up", "for", "you", "one", "moment", "please")
CUE = cues.load_bank("")["tool_call"]


def turn(words=WORDS, name="get_weather", **result):
    """A turn with a call at 1 s whose result comes at 2 s."""
    call = Seen(ToolCallStart(name, "1", 0), 1.0, 1.0)
    journal = TurnRecord(RATE)
    journal.seen = [Seen(TextDelta(" ".join(words)), 0.1, 0.1), call]
    journal.seen.append(Seen(ToolCallEnd(name, "1", 0, "{}", "ok"), 1.1, 1.1))
    if result:
        journal.seen.append(Seen(ToolResult(tool_name=name, tool_call_id="1", **result), None, 2.0))
    journal.sounded = [Sounded("tool_call", call, RATE, 1.0)]
    starts_s = [k * len(SPEECH) / len(words) / RATE for k in range(len(words))]
    journal.heard = [HeardWord(word, round(at_s * RATE), at_s) for word, at_s in zip(words, starts_s, strict=True)]
    journal.output_samples = len(SPEECH)
    return journal


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """A function that draws a turn and returns the figure."""
    figures = []

    class Kept(Figure):
        def savefig(self, *arguments, **settings):
            figures.append(self)
            super().savefig(*arguments, **settings)

    monkeypatch.setattr("matplotlib.figure.Figure", Kept)

    def draw(journal, mixed=None):
        mixed = over_speech([CUE], SPEECH, RATE, first_at_s=1.0) if mixed is None else mixed
        draw_turn(journal, {CUE.name: CUE}, (mixed, SPEECH), "a recording", tmp_path / "turn.png")
        return figures[-1]

    draw.file = tmp_path / "turn.png"
    return draw


def texts(figure, row):
    return [text.get_text() for text in figure.axes[row].texts if text.get_visible()]


def test_the_title_says_what_happens(drawn):
    assert drawn(turn())._suptitle.get_text() == "The model calls get_weather; 0 ms later its cue sounds"
    assert imread(drawn.file).shape[1] == 1000
    plain = TurnRecord(RATE)
    assert drawn(plain, SPEECH)._suptitle.get_text() == "An answer, as it was heard"


def test_no_word_covers_another_one(drawn):
    words = ["extraordinarily", "circumstantial", "considerations", "notwithstanding"] * 3
    figure = drawn(turn(words))
    renderer = figure._get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[1].texts if text.get_visible()]
    assert len(boxes) > 6
    assert not any(first.overlaps(second) for first, second in combinations(boxes, 2))


def test_a_cue_is_shaded_across_all_rows_for_its_length_though_the_speech_stays_ducked_longer(drawn):
    figure = drawn(turn())
    for axes in figure.axes[:5]:
        (span,) = [patch for patch in axes.patches if patch.get_alpha() == 0.22]
        assert span.get_x() == pytest.approx(1.0)
        assert span.get_width() == pytest.approx(CUE.duration_s)


@pytest.mark.parametrize(("word", "shown"), [("東京", "??"), ("a\U000f0000b", "a?b"), ("naïve", "naïve")])
def test_a_character_without_a_font_is_a_question_mark_and_no_box(drawn, monkeypatch, word, shown):
    monkeypatch.setattr(picture, "_WIDE_FONTS", ())
    assert texts(drawn(turn([word], name=word)), 1) == [shown]  # a missing glyph would warn, which is an error here


def test_the_gain_of_ducked_speech_is_measured_from_the_mix():
    cue = cues.load_bank("")["tool_call"]
    mixed = over_speech([cue], SPEECH, RATE, first_at_s=1.0)
    times_s, gains_db = ducking_db(mixed, SPEECH, RATE)
    assert not gains_db[times_s < 0.95].any()
    during = gains_db[(times_s > 1.09) & (times_s < 1.17)]
    assert during.min() == pytest.approx(-6.0, abs=1.0)


def test_a_gain_without_a_cue_is_measured_exactly():
    for gain_db in (-3.0, -9.0):
        _, gains_db = ducking_db(SPEECH * np.float32(10 ** (gain_db / 20)), SPEECH, RATE)
        assert np.median(gains_db[gains_db < 0]) == pytest.approx(gain_db, abs=0.01)


@pytest.mark.parametrize("journal", [TurnRecord(RATE), turn(is_error=True, content="no")], ids=["empty", "error"])
def test_turns_that_went_wrong_are_drawn_too(drawn, journal):
    empty = np.zeros(0, dtype=np.float32)
    drawn(journal, SPEECH)
    draw_turn(TurnRecord(RATE), {}, (empty, empty), "", drawn.file)
