# SPDX-License-Identifier: Apache-2.0
"""cufile.safetensors.load_sharded: models of several files and their index."""
import json
import os

import pytest

from blocks import ModelBlocks
from conftest import descriptors, raised_soon

INDEX = "model.safetensors.index.json"


@pytest.fixture
def st(cufile):
    import cufile.safetensors as module
    return module


@pytest.fixture
def numpy():
    return pytest.importorskip("numpy")


def write_index(folder, table):
    text = table if isinstance(table, bytes) else json.dumps(
        {"metadata": {"total_size": 1}, "weight_map": table}).encode()
    (folder / INDEX).write_bytes(text)


@pytest.fixture
def model(st, numpy, tmp_path):
    """A folder with a model of three files, and {name: bytes}."""
    table, data = {}, {}
    for shard in range(3):
        name = f"model-{shard + 1:05}-of-00003.safetensors"
        tensors = {f"layers.{shard}.{i}": os.urandom(200_003 + i) for i in range(4)}
        st.save_file({key: numpy.frombuffer(raw, "u1") for key, raw in tensors.items()},
                     tmp_path / name)
        table.update(dict.fromkeys(tensors, name))
        data.update(tensors)
    write_index(tmp_path, table)
    (tmp_path / "config.json").write_text("{}")
    return tmp_path, data


@pytest.mark.parametrize("give", [
    lambda folder: folder, lambda folder: str(folder), lambda folder: folder / INDEX,
    lambda folder: os.fsencode(folder / INDEX)], ids=["path", "text", "index", "bytes"])
def test_a_model_of_several_files_is_loaded_bit_by_bit(st, gpu, model, give):
    folder, data = model
    blocks = ModelBlocks(gpu)
    assert st.load_sharded(give(folder), framework=blocks, piece=65536) == data
    assert len(blocks.made) == 3


def test_files_without_a_wanted_tensor_are_not_opened(st, gpu, model):
    folder, data = model
    (folder / "model-00001-of-00003.safetensors").unlink()
    blocks = ModelBlocks(gpu)
    names = ["layers.1.0", "layers.1.3", "layers.2.2"]
    assert st.load_sharded(folder, only=names, framework=blocks) == {
        name: data[name] for name in names}
    assert len(blocks.made) == 3
    assert st.load_sharded(folder, only=lambda name: name.startswith("layers.2."),
                           framework=blocks) == {
        name: raw for name, raw in data.items() if name.startswith("layers.2.")}
    assert st.load_sharded(folder, only=lambda name: False, framework=blocks) == {}
    with pytest.raises(st.SafetensorsError, match="'layers.3.0': is not in the index"):
        st.load_sharded(folder, only=["layers.1.0", "layers.3.0"], framework=blocks)


def test_an_index_is_found_from_inside_its_folder(st, numpy, model, monkeypatch):
    folder, data = model
    monkeypatch.chdir(folder)
    for path in (INDEX, "."):
        got = st.load_sharded(path, framework="numpy")
        assert {name: value.tobytes() for name, value in got.items()} == data


def test_an_index_that_is_a_pipe_is_refused_and_not_waited_for(st, model):
    folder, _ = model
    (folder / INDEX).unlink()
    os.mkfifo(folder / INDEX)
    error = raised_soon(lambda: st.load_sharded(folder))
    assert isinstance(error, st.SafetensorsError)
    assert str(error) == f"{folder / INDEX}: is no regular file"


def test_a_folder_with_one_file_and_no_index_is_that_model(st, gpu, model):
    folder, data = model
    (folder / INDEX).unlink()
    for name in sorted(os.listdir(folder))[2:]:
        (folder / name).unlink()
    first = {name: raw for name, raw in data.items() if name.startswith("layers.0.")}
    assert st.load_sharded(folder, framework=ModelBlocks(gpu)) == first


def test_a_folder_without_an_index_may_have_variants_of_its_model(st, gpu, model):
    folder, data = model
    (folder / INDEX).unlink()
    os.rename(folder / "model-00002-of-00003.safetensors", folder / "model.safetensors")
    os.rename(folder / "model-00001-of-00003.safetensors",
              folder / "model.fp16.safetensors")
    second = {name: raw for name, raw in data.items() if name.startswith("layers.1.")}
    assert st.load_sharded(folder, framework=ModelBlocks(gpu)) == second


def refused(st, gpu, path, says, error=None):
    blocks, before = ModelBlocks(gpu), descriptors()
    with pytest.raises(error or st.SafetensorsError, match=says):
        st.load_sharded(path, framework=blocks)
    assert not blocks.made and descriptors() == before


def test_a_folder_that_is_no_model_or_two_is_refused(st, gpu, model, tmp_path_factory):
    folder, _ = model
    refused(st, gpu, tmp_path_factory.mktemp("empty"), "has neither an index nor")
    (folder / ("other" + INDEX)).write_text("{}")
    refused(st, gpu, folder, "has 2 indexes, as 'model.*' and 'othermodel")
    (folder / INDEX).unlink()
    (folder / ("other" + INDEX)).unlink()
    refused(st, gpu, folder, "has 3 safetensors files and no index")
    refused(st, gpu, folder / "nothing", "nothing", FileNotFoundError)


def test_a_tensor_that_its_file_lacks_is_named_before_anything_is_made(st, gpu, model):
    folder, data = model
    table = json.loads((folder / INDEX).read_text())["weight_map"]
    write_index(folder, {**table, "lost": table["layers.1.0"]})
    refused(st, gpu, folder, "00002-of-00003.safetensors: tensor 'lost': is not there")


def test_a_file_that_is_missing_is_the_systems_error(st, gpu, model):
    folder, _ = model
    (folder / "model-00002-of-00003.safetensors").unlink()
    refused(st, gpu, folder, "00002-of-00003", FileNotFoundError)


@pytest.mark.parametrize("shard", ["../x.safetensors", "/etc/passwd", "a/b", "", ".",
                                   "..", "a\0b", 5, None, ["x"], {"x": "y"}])
def test_an_index_names_files_of_its_own_folder_alone(st, gpu, model, shard):
    folder, _ = model
    write_index(folder, {"w": shard})
    refused(st, gpu, folder, "'w': .* is no file of the index's folder")


@pytest.mark.parametrize("text, says", [
    (b"", "the index does not begin with a brace"), (b"[]", "begin with a brace"),
    (b'{"weight_map": {', "the index is no JSON"), (b'{"a":' * 200000, "nested|no JSON"),
    (b'{"weight_map": {"w": "a", "w": "b"}}', "'w' stands twice"),
    (b"{}", "no table weight_map"), (b'{"weight_map": {}}', "no table weight_map"),
    (b'{"weight_map": [1]}', "no table weight_map"), (b'{"\xff": 1}', "no JSON")])
def test_a_hostile_index_is_refused_in_words(st, gpu, model, text, says):
    folder, _ = model
    write_index(folder, text)
    refused(st, gpu, folder, says)


def test_an_index_as_long_as_a_disk_is_not_read(st, gpu, model):
    folder, _ = model
    os.truncate(folder / INDEX, 1 << 40)
    refused(st, gpu, folder, "an index of more than 100000000 bytes")


def test_a_descriptor_is_no_index(st, gpu, model):
    refused(st, gpu, 0, "needs a path", TypeError)
