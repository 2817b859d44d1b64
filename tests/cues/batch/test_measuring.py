import numpy as np
import pytest

import cues
from cues.batch.measuring import COLUMNS, Measure
from cues.batch.recordings import find_sources
from cues.batch.run import run_batch, run_task
from cues.errors import CueError
from tests.support.packs import cut_in_the_middle, soft, tone, write


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "recordings"
    (place / "deep").mkdir(parents=True)
    write(place / "a.wav", soft(tone(440.0, 24000)))
    write(place / "b.flac", np.concatenate([cut_in_the_middle(), np.zeros(12000)]), subtype="PCM_16")
    write(place / "deep" / "c.wav", np.stack([soft(tone(600.0, 48000))] * 2, axis=1), rate=48000)
    (place / "broken.wav").write_bytes(b"RIFF")
    (place / "notes.txt").write_text("no recording")
    return place


def names(sources):
    return [source.file.rpartition("/")[2] for source in sources]


def test_a_folder_with_all_below_it_a_pattern_and_a_file_are_found(folder):
    assert names(find_sources(str(folder))) == ["a.wav", "b.flac", "broken.wav", "c.wav"]
    assert names(find_sources(str(folder / "**" / "*.wav"))) == ["a.wav", "broken.wav", "c.wav"]
    assert names(find_sources(str(folder / "a.wav"))) == ["a.wav"]


def test_the_columns_are_those_of_the_single_meters(folder):
    row = run_task(Measure(find_sources(str(folder / "a.wav"))[0]))
    samples = soft(tone(440.0, 24000)).astype(np.float32)
    assert set(row) == {*COLUMNS, "key"}
    assert row["integrated_lufs"] == round(cues.integrated_lufs(samples), 4)
    assert row["true_peak_dbtp"] == round(cues.true_peak_dbtp(samples), 4)
    assert (row["length_s"], row["sample_rate"], row["channels"], row["n_clicks"]) == (1.0, 24000, 1, 0)
    clicking = run_task(Measure(find_sources(str(folder / "b.flac"))[0]))
    assert (clicking["n_clicks"], clicking["clicks_s"]) == (1, "0.1000")


def test_a_broken_file_and_one_that_vanished_are_rows_that_failed(folder):
    sources = find_sources(str(folder))
    (folder / "a.wav").unlink()
    rows = {row["file"].rpartition("/")[2]: row for row in map(run_task, map(Measure, sources))}
    assert rows["a.wav"]["error"] == "cannot be read as audio: there is no such file"
    assert rows["broken.wav"]["error"].startswith("cannot be read as audio")
    assert [rows[name]["status"] for name in ("b.flac", "c.wav")] == ["ok", "ok"]


def test_a_remote_folder_is_measured_like_a_local_one(folder):
    import fsspec

    remote = fsspec.filesystem("memory")
    for path in folder.rglob("*.*"):
        remote.pipe(f"/calls/{path.name}", path.read_bytes())
    with pytest.raises(CueError, match="nowhere"):
        find_sources("memory://nowhere/x.wav")
    sources = find_sources("memory://calls")
    assert names(sources) == ["a.wav", "b.flac", "broken.wav", "c.wav"]
    rows = map(run_task, map(Measure, sources))
    local = map(run_task, map(Measure, find_sources(str(folder))))
    for far, near in zip(rows, local, strict=True):
        assert {key: far.get(key) for key in COLUMNS[3:]} == {key: near.get(key) for key in COLUMNS[3:]}


def test_processes_and_a_cluster_of_two_workers_in_another_folder_give_the_same_table(folder, tmp_path, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.chdir(folder)
    tasks = [Measure(source) for source in find_sources(".")]
    by_processes = run_batch(tasks, tmp_path / "p.csv", COLUMNS, workers=2)
    monkeypatch.chdir(tmp_path.parent)
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        monkeypatch.chdir(folder)
        on_dask = run_batch(tasks, tmp_path / "d.csv", COLUMNS, dask=cluster.scheduler_address)
    assert on_dask.rows == by_processes.rows
    assert (tmp_path / "d.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()


def test_a_scheduler_that_is_not_there_is_an_error(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("cues.batch.run._CONNECT_S", 0.2)
    with pytest.raises(CueError, match="no Dask scheduler at"):
        run_batch([Measure(find_sources(str(folder))[0])], tmp_path / "t.csv", COLUMNS, dask="tcp://127.0.0.1:9")


def test_of_several_channels_the_loudness_is_that_of_all_and_peaks_and_clicks_are_the_worst_ones(tmp_path):
    loud, quiet = soft(tone(600.0, 24000, level=0.5)), cut_in_the_middle()
    stereo = np.stack([loud, np.concatenate([quiet, np.zeros(24000 - len(quiet))])], axis=1).astype(np.float32)
    write(tmp_path / "stereo.wav", stereo)
    write(tmp_path / "opposite.wav", np.stack([loud, -loud], axis=1))
    row, opposite = (run_task(Measure(source)) for source in reversed(find_sources(str(tmp_path))))
    levels = cues.measure(stereo)
    assert (row["integrated_lufs"], row["m100_max_lufs"]) == (
        round(levels.integrated_lufs, 4),
        round(levels.m100_max_lufs, 4),
    )
    assert row["true_peak_dbtp"] == round(cues.true_peak_dbtp(stereo[:, 0]), 4)
    assert (row["sample_peak_dbfs"], row["channels"]) == (round(levels.sample_peak_dbfs, 4), 2)
    assert (row["n_clicks"], row["clicks_s"]) == (1, "0.1000")
    assert opposite["integrated_lufs"] == round(cues.integrated_lufs(loud) + 10.0 * np.log10(2.0), 4)
