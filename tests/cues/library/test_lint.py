import numpy as np
import pytest
import soundfile

from cues.library.audiofile import write_audio
from cues.library.bank import make_cue
from cues.library.lint import check_pack
from cues.synthesis.catalog import CATALOG
from tests.support.packs import cut_in_the_middle, naive_saw, rhythm, write


def pack(folder, text):
    (folder / "pack.toml").write_text(text)
    return check_pack(folder)


def found(problems):
    return [(problem.where, problem.code) for problem in problems]


def test_the_built_in_cues_as_a_pack_have_no_problem(tmp_path):
    for name in CATALOG:
        cue = make_cue(name, None, 48000, -20.0)
        write_audio(tmp_path / f"{name}.wav", cue.samples, 48000, "wav", "24")
    assert check_pack(tmp_path) == []


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ('{ file = "x.wav", target_lu = 3 }', "too_loud"),
        ('{ file = "x.wav", gain_db = -30 }', "too_quiet"),
        ('{ file = "quiet.wav" }', "too_quiet"),
    ],
    ids=["above the speech", "turned down", "no gain reaches it"],
)
def test_a_level_that_is_not_heard_or_covers_words_is_a_problem(tmp_path, entry, code):
    write(tmp_path / "x.wav", rhythm(0, 90, 250, 310))
    write(tmp_path / "quiet.wav", 0.004 * rhythm(0, 90, 250, 310))
    assert ("tool_call", code) in found(pack(tmp_path, f"[cues]\ntool_call = {entry}\n"))


@pytest.mark.parametrize("rate_hz", [1000, 7350, 352_800, 768_000])
def test_a_file_at_any_rate_that_a_pack_may_have_is_checked(tmp_path, rate_hz):
    at_s = np.arange(rate_hz // 4) / rate_hz
    chirp = 0.4 * np.sin(2 * np.pi * (320 + 200 * at_s) * at_s) * np.hanning(len(at_s))
    soundfile.write(tmp_path / "good.wav", chirp, rate_hz, subtype="FLOAT")
    soundfile.write(tmp_path / "bad.wav", chirp + 0.1, rate_hz, subtype="FLOAT")
    assert pack(tmp_path, '[cues]\nerror = "good.wav"\n') == []
    problems = found(pack(tmp_path, '[cues]\nerror = "bad.wav"\n'))
    assert ("error", "dc") in problems
    assert "pack" not in dict(map(reversed, problems))


def test_cues_that_differ_in_pitch_alone_are_hard_to_tell_apart_and_so_is_a_copy_of_a_built_in_one(tmp_path):
    write(tmp_path / "a.wav", rhythm(0, 100, 300, hz=700.0))
    write(tmp_path / "b.wav", rhythm(0, 100, 300, hz=880.0))
    write(tmp_path / "c.wav", make_cue("agent", None, 24000, -20.0).samples)
    for text in ('tool_call = "a.wav"\nagent = "b.wav"\n', 'tool_call = "c.wav"\n'):
        (problem,) = pack(tmp_path, f"[cues]\n{text}")
        assert problem.code == "confusable"
        assert "'agent'" in problem.message


def test_a_sound_given_as_a_spec_is_checked_too(tmp_path):
    spec = "{ notes = [{ hz = 90, length_ms = 1500 }] }"
    assert set(found(pack(tmp_path, f"[cues]\nerror = {{ spec = {spec} }}\n"))) >= {
        ("error", "too_long"),
        ("error", "telephone"),
    }


def test_all_faults_of_a_pack_are_told_with_what_they_are_about(tmp_path):
    write(tmp_path / "clicks.wav", cut_in_the_middle())
    write(tmp_path / "alias.wav", naive_saw())
    (tmp_path / "broken.wav").write_bytes(b"RIFF and nothing more")
    problems = pack(
        tmp_path,
        """
        colour = "red"
        [cues]
        agent = { gain_db = 99, volum = 3 }
        "ping: 1" = { loop = { begin = 3 } }
        listening = "../outside.wav"
        error = "broken.wav"
        success = "clicks.wav"
        tool_call = "alias.wav"
        [rules]
        "x_*" = "nobody"
        "y" = "ping: 1"
        """,
    )
    wheres = ["pack.toml", "agent", "agent", "ping: 1", "listening", "[rules] x_*", "error"]
    assert [problem.where for problem in problems if problem.code == "pack"] == wheres
    assert {("success", "clicks"), ("tool_call", "alias")} <= set(found(problems))
    (tmp_path / "pack.toml").unlink()
    wheres = [problem.where for problem in check_pack(tmp_path)]
    assert wheres == ["alias.wav", "broken.wav", "clicks.wav"]
    for name in wheres:
        (tmp_path / name).unlink()
    assert [problem.where for problem in check_pack(tmp_path)] == [str(tmp_path)]


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ('[cues]\nmail = { spec = "agent" }\n', 'correct the name, or add a rule under [rules]: "TOOL" = "mail"'),
        ('[rules]\nmail = "mail.wav"\n', "move the line to [cues]: a rule names a cue, not a file"),
        ('agent = "agent.wav"\n', "move it to [cues]"),
        (
            "[cues]\nagent = { notes = [{ hz = 500, length_ms = 90 }] }\n",
            "write it in the cue's spec: spec = { notes = … }",
        ),
    ],
    ids=["a cue without a rule", "a file under rules", "a cue without a section", "notes without a spec"],
)
def test_a_line_in_the_wrong_place_is_answered_with_the_right_one(tmp_path, text, fix):
    (problem,) = pack(tmp_path, text)
    assert problem.fix == fix


def test_a_sound_that_no_entry_mentions_is_a_problem_and_another_entrys_file_is_not(tmp_path):
    for name in ("error", "agent", "draft"):
        write(tmp_path / f"{name}.wav", rhythm(0, 90, 250, 310))
    (problem,) = pack(tmp_path, '[cues]\ntool_call = "agent.wav"\n')
    assert (problem.where, problem.code) == ("error.wav", "unused")
    assert problem.fix == 'add error = "error.wav" under [cues], or delete the file'
