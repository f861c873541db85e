# SPDX-License-Identifier: Apache-2.0
"""Tables, cliffs and charts from a recorded run (on the fake driver: the
numbers mean nothing), and the grid's script from its first cell to its report."""
import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import charts
import cliffs
import pytest
import rows as bench
import svg
import table

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
RECORDED = HERE / "recorded.json"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def recorded():
    return bench.load([RECORDED])


def cell(library="ours", gb_per_s=1.0, **more):
    row = {"kind": "cell", "library": library, "error": "", "mode": "sync", "op": "read",
           "medium": "cached", "memory": "device", "registered": True, "align": "aligned",
           "size": 1 << 20, "file_size": 1 << 30, "threads": 1, "gpus": 1, "depth": 1,
           "streams": 1, "stale": False, "gb_per_s": gb_per_s, "ops_per_s": gb_per_s * 1000,
           "p50_us": 1.0, "p99_us": 2.0, "cpu_s_per_gb": 0.1, "steal_s": 0.25}
    return {**row, **more}


def test_a_cut_line_is_left_out(tmp_path):
    path = tmp_path / "cut.json"
    path.write_text(json.dumps(cell()) + '\n{"kind":"cell","libr')
    assert bench.load([path]) == [cell()]


def test_the_table_has_a_row_a_cell_and_a_column_a_library(recorded, capsys):
    table.main([RECORDED])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| cell | ours | byhand | limit | ours / byhand |")
    assert sum(line.startswith("| read ") for line in lines) == len(bench.cells(recorded))
    assert any("batch of 32" in line and "not available (5039)" in line for line in lines)
    assert any("4 streams of 8" in line for line in lines)
    assert any("unregistered odd buffer" in line for line in lines)
    assert any(line.startswith("| 16 MiB, ours |") for line in lines)
    assert any(line.startswith("| at rest |") for line in lines)
    widths = [line.count("|") for line in lines if line.startswith(("| cell", "| read"))]
    assert len(set(widths)) == 1


def test_the_ratio_is_that_of_the_first_library(tmp_path, capsys):
    path = tmp_path / "two.json"
    rows = [cell("ours", 6.0), cell("nvidia", 4.0), cell("byhand", error="hung")]
    path.write_text("\n".join(map(json.dumps, rows)))
    table.main([path])
    out = capsys.readouterr().out
    assert out.splitlines()[2] == (
        "| read cached 1 MiB x1 device | 6.00 GB/s | 4.00 GB/s | hung | 1.50 |  | "
        "0.10 / 0.10 / - |")


def test_the_number_of_gpus_is_told_where_there_are_more(tmp_path, capsys):
    path = tmp_path / "two.json"
    rows = [cell("ours", 6.0, gpus=gpus) for gpus in (1, 2)]
    path.write_text("\n".join(map(json.dumps, rows)))
    table.main([path])
    lines = capsys.readouterr().out.splitlines()[2:4]
    assert [line.split(" | ")[0] for line in lines] == [
        "| read cached 1 MiB x1 device", "| read cached 1 MiB x1 device on 2 GPUs"]


def test_what_the_host_took_is_the_sum_of_the_cells(tmp_path, capsys):
    path = tmp_path / "two.json"
    rows = [cell(), cell(threads=2, steal_s=1.5), cell("nvidia", steal_s=0.0)]
    path.write_text("\n".join(map(json.dumps, rows)))
    table.main([path])
    assert "took from these cells: ours 1.75 s, nvidia 0.00 s." in capsys.readouterr().out


@pytest.mark.parametrize("step, more", [
    ("size", {"size": 4 << 20}), ("threads", {"threads": 2}),
    ("depth", {"mode": "batch", "depth": 32})])
def test_a_cliff_is_less_for_more(step, more):
    first = cell(**({"mode": "batch"} if step == "depth" else {}))
    assert not cliffs.cliffs([first, cell(gb_per_s=0.96, **more)])
    found, = cliffs.cliffs([first, cell(gb_per_s=0.94, **more)])
    assert found[0] == step and found[2][step] == more[step] and found[3] is None


def test_cliffs_of_the_machine_are_told_apart(tmp_path, capsys):
    path = tmp_path / "rows.json"
    rows = [cell("ours", 4.0), cell("ours", 2.0, size=4 << 20),
            cell("limit", 8.0), cell("limit", 5.0, size=4 << 20)]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert cliffs.main([path]) == 0
    assert "4.00 to 2.00 GB/s, limit x0.62" in capsys.readouterr().out
    path.write_text("\n".join(map(json.dumps, rows[:2])))
    assert cliffs.main([path]) == 1
    assert "1 cliffs of ours" in capsys.readouterr().out


def test_failures_and_other_cells_are_no_cliffs():
    assert not cliffs.cliffs([cell(), cell(gb_per_s=0.1, size=4 << 20, op="write"),
                              cell(gb_per_s=0.1, size=4 << 20, file_size=1 << 27),
                              cell(gb_per_s=0.0, size=8 << 20, error="hung")])


def test_charts_are_drawn_for_what_was_measured(tmp_path, capsys):
    charts.main(tmp_path, [RECORDED])
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(charts.CHARTS)
    assert len(capsys.readouterr().out.split()) == len(charts.CHARTS)
    for path in tmp_path.iterdir():
        root = xml.etree.ElementTree.parse(path).getroot()
        words = [text.text for text in root.iter(SVG + "text")]
        assert root.tag == SVG + "svg" and {"ours", "byhand"} <= set(words)


def test_charts_are_of_one_gpu(tmp_path):
    path = tmp_path / "two.json"
    path.write_text(json.dumps(cell(size=4096, gpus=2)))
    charts.main(tmp_path / "img", [path])
    assert not list((tmp_path / "img").iterdir())


def test_no_rows_draw_nothing(tmp_path):
    empty = tmp_path / "empty.json"
    empty.write_text("")
    charts.main(tmp_path / "img", [empty])
    assert not list((tmp_path / "img").iterdir())


def test_a_point_stands_where_its_value_is(recorded):
    root = xml.etree.ElementTree.fromstring(charts.size_chart(recorded))
    rows = [row for row in charts.select(recorded, mode="sync", threads=1)
            if row["library"] == "ours"]
    line = next(element for element in root.iter(SVG + "polyline")
                if element.get("stroke") == svg.COLOURS["ours"])
    heights = [float(point.split(",")[1]) for point in line.get("points").split()]
    values = [row["gb_per_s"] for row in sorted(rows, key=lambda row: row["size"])]
    bottom = svg.HEIGHT - svg.BOTTOM
    scales = {round((bottom - y) / value, 0) for y, value in zip(heights, values) if value > 1}
    assert len(heights) == len(values) and len(scales) == 1


def test_the_points_of_a_line_were_measured_together(tmp_path):
    sizes, threads = tmp_path / "sizes.json", tmp_path / "threads.json"
    few = [cell(gb_per_s=1.0, size=size) for size in (1 << 12, 1 << 20, 1 << 24)]
    again = [cell(gb_per_s=9.0, size=size) for size in (1 << 12, 1 << 20)]
    sizes.write_text("\n".join(map(json.dumps, few)))
    threads.write_text("\n".join(map(json.dumps, again)))
    charts.main(tmp_path, [sizes, threads])
    assert (tmp_path / "size.svg").read_text() == charts.size_chart(few)


def test_what_hung_is_a_word_and_no_bar():
    drawing = charts.batch_chart([cell("ours", 2.0, mode="batch", depth=128),
                                  cell("nvidia", mode="batch", depth=128, error="hung")])
    root = xml.etree.ElementTree.fromstring(drawing)
    assert "hung" in [text.text for text in root.iter(SVG + "text")]
    bars = [element for element in root.iter(SVG + "rect") if float(element.get("height")) > 12]
    assert len(bars) == 2  # the paper and ours


@pytest.mark.parametrize("value", [0, 0.004, 0.37, 1, 1.01, 7.7, 46, 99.5, 101, 640, 1200])
def test_an_axis_ends_at_a_round_number_above(value):
    top, ticks = svg.ceiling(value)
    assert value <= top <= max(value * 2.01, 1) and 3 <= ticks <= 5


def run_grid(tmp_path, *sections):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CUFILE_", "FAKECUDA_", "LD_LIBRARY"))}
    fake = str(pathlib.Path(os.environ["OCF_FAKECUDA"]).parent)
    env.update(OCF_BENCH_FILE=str(tmp_path / "data"), OCF_BENCH_FILE_SIZE="32M",
               OCF_BENCH_SECONDS="0.01", OCF_BENCH_ROUNDS="1", OCF_BENCH_PATIENCE="60",
               LD_LIBRARY_PATH=fake,
               OCF_REFERENCE=os.environ["OCF_BAD"], PATH=f"{pathlib.Path(sys.executable).parent}:"
               + env["PATH"])
    build = pathlib.Path(os.environ["OCF_BENCH"]).parents[1]
    return subprocess.run([ROOT / "bench/grid.sh", build, tmp_path / "out", *sections], env=env,
                          capture_output=True, text=True, timeout=280, check=False)


def test_the_grid_lives_through_a_library_that_fails(tmp_path):
    done = run_grid(tmp_path, "stream", "fresh")
    out = tmp_path / "out"
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nvidia" in (out / "tables.md").read_text()
    assert "### fresh" in (out / "tables.md").read_text()
    assert "cliffs of ours" in (out / "cliffs.txt").read_text()
    assert (out / "img/stream.svg").exists()
    by_hand = [row for row in bench.load(sorted(out.glob("*.json")))
               if row["kind"] == "cell" and row["library"] == "byhand"]
    assert [row["error"] for row in by_hand] == [""] * 13
    assert not list(tmp_path.glob("data*"))


def test_the_grid_leaves_files_of_others_alone(tmp_path):
    for name in ("data", "data.big"):
        (tmp_path / name).write_text("another's")
    run_grid(tmp_path, "rest")
    for name in ("data", "data.big"):
        assert (tmp_path / name).read_text() == "another's"


def test_the_grid_refuses_a_section_it_does_not_have(tmp_path):
    done = run_grid(tmp_path, "fresh", "nonsense")
    assert done.returncode == 2 and "no section nonsense" in done.stderr
    assert not list((tmp_path / "out").glob("*.json"))
