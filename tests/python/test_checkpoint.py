# SPDX-License-Identifier: Apache-2.0
"""cufile.checkpoint on good files: bit by bit what was saved, shared as it was."""
import gc
import os
import sys
import zipfile
from collections import OrderedDict

import pytest

import pt_archive as pt
from blocks import CheckpointBlocks
from conftest import ROOT, descriptors_of


@pytest.fixture
def cp(cufile):
    import cufile.checkpoint as module
    return module


@pytest.fixture
def numpy():
    return pytest.importorskip("numpy")


def state():
    """A state of all kinds, and its storages."""
    data = {"0": os.urandom(4 * 3 * 70), "1": os.urandom(8 * 33),
            "2": os.urandom(2 * 9), "3": bytes(b & 1 for b in os.urandom(15)),
            "4": b"", "5": os.urandom(8 * 4), "6": os.urandom(300_001)}
    module = OrderedDict(weight=pt.tensor("FloatStorage", "0", 210, (3, 70)),
                         bias=pt.tensor("HalfStorage", "2", 9, (9,)))
    module._metadata = OrderedDict({"": {"version": 1}})
    return {"model": module,
            "row": pt.tensor("FloatStorage", "0", 210, (70,), offset=70),
            "turned": pt.tensor("FloatStorage", "0", 210, (70, 3), (1, 70)),
            "wide": pt.tensor("LongStorage", "1", 33, (4, 33), (0, 1)),
            "ids": pt.tensor("LongStorage", "1", 33, (33,)),
            "mask": pt.tensor("BoolStorage", "3", 15, (5, 3)),
            "none": pt.tensor("IntStorage", "4", 0, (0, 4)),
            "spin": pt.tensor("ComplexFloatStorage", "5", 4, (4,)),
            "u16": pt.tensor("UntypedStorage", "2", 18, (9,), dtype="uint16"),
            "odd": pt.tensor("ByteStorage", "6", 300_001, (300_001,)),
            "plain": [1, -5, 1 << 40, -(1 << 90), 2.5, float("inf"), None, True, "é",
                      b"\x00\xff", (1, (2,)), {3, 4}, frozenset([5]), bytearray(b"x"),
                      {"lr": 0.1, 7: ()}, 1 + 2j],
            "size": pt.Call("torch", "Size", (3, 4))}, data


def check_state(got, data, numpy):
    def bits(array):
        return numpy.ascontiguousarray(array).tobytes()

    whole = numpy.frombuffer(data["0"], "f4").reshape(3, 70)
    assert type(got["model"]) is OrderedDict
    assert got["model"]._metadata == {"": {"version": 1}}
    assert bits(got["model"]["weight"]) == data["0"]
    assert bits(got["model"]["bias"]) == data["2"]
    assert bits(got["row"]) == bits(whole[1])
    assert bits(got["turned"]) == bits(whole.T)
    ids = numpy.frombuffer(data["1"], "i8")
    assert bits(got["wide"]) == bits(numpy.stack([ids] * 4))
    assert bits(got["ids"]) == data["1"] and bits(got["mask"]) == data["3"]
    assert got["none"].shape == (0, 4) and got["none"].dtype == "i4"
    assert bits(got["spin"]) == data["5"] and got["spin"].dtype == "c8"
    assert got["u16"].dtype == "u2" and bits(got["u16"]) == data["2"]
    assert bits(got["odd"]) == data["6"]
    assert numpy.shares_memory(got["row"], got["turned"])
    assert got["plain"] == [1, -5, 1 << 40, -(1 << 90), 2.5, float("inf"), None, True,
                            "é", b"\x00\xff", (1, (2,)), {3, 4}, frozenset([5]),
                            bytearray(b"x"), {"lr": 0.1, 7: ()}, 1 + 2j]
    assert got["size"] == (3, 4)


@pytest.mark.parametrize("align", [1, 64, 4096])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_checkpoint_is_loaded_bit_by_bit(cp, numpy, tmp_path, protocol, align):
    value, data = state()
    path = pt.save(tmp_path / "c.pt", value, data, protocol, align)
    check_state(cp.load_file(path, framework="numpy"), data, numpy)
    assert not descriptors_of(path)


def test_an_archive_of_pythons_zipfile_is_loaded(cp, numpy, tmp_path):
    value, data = state()
    path = tmp_path / "c.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for name, content in {"x/data.pkl": pt.pickled(value), "x/version": b"3\n",
                              **{f"x/data/{key}": raw for key, raw in data.items()}
                              }.items():
            file.writestr(name, content)
    check_state(cp.load_file(path, framework="numpy"), data, numpy)


@pytest.mark.parametrize("comment", [b"", b"PK\5\6" + bytes(30), bytes(65535)])
def test_an_archive_may_have_a_comment_and_no_64_bit_end(cp, numpy, tmp_path, comment):
    value, data = state()
    path = pt.save(tmp_path / "c.pt", value, data, zip64=False, comment=comment)
    check_state(cp.load_file(path, framework="numpy"), data, numpy)


@pytest.mark.parametrize("align", [1, 64, 4096])
@pytest.mark.parametrize("threads", [1, 5])
def test_the_records_become_one_gpu_block(cp, gpu, tmp_path, align, threads):
    data = {str(i): os.urandom(4 * (i * 7001 % 90000 + 1))
            for i in range(20)}
    value = {key: pt.tensor("FloatStorage", key, len(raw) // 4, (len(raw) // 4,))
             for key, raw in data.items()}
    path = pt.save(tmp_path / "c.pt", value, data, align=align)
    blocks = CheckpointBlocks([gpu])
    got = cp.load_file(path, 0, framework=blocks, piece=65536, threads=threads)
    assert {key: each[1] for key, each in got.items()} == data
    assert len(blocks.made) == 1
    gc.collect()
    assert blocks.made[0]() is None


def test_only_what_the_pickle_names_is_read(cp, gpu, tmp_path):
    """A record of gigabytes that nobody names costs nothing, and what lies
    behind it has offsets of 64 bits."""
    raw = os.urandom(5000)
    records = [pt.Record("data.pkl", pt.pickled(
                   pt.tensor("ByteStorage", "1", 5000, (5000,)))),
               pt.Record("data/0", hole=5 << 30), pt.Record("data/1", raw)]
    path = pt.write(tmp_path / "c.pt", records)
    blocks = CheckpointBlocks([gpu])
    assert cp.load_file(path, 0, framework=blocks)[1] == raw
    assert len(blocks.made) == 1


def test_tensors_far_apart_are_not_read_with_what_is_between(cp, gpu, tmp_path):
    data = {"0": os.urandom(100), "1": os.urandom(3 << 20), "2": os.urandom(100)}
    value = [pt.tensor("ByteStorage", key, 100, (100,)) for key in "02"]
    path = pt.save(tmp_path / "c.pt", value, data)
    blocks = CheckpointBlocks([gpu])
    sizes = []
    plain = blocks.empty
    blocks.empty = lambda nbytes, device: (sizes.append(nbytes),
                                           plain(nbytes, device))[1]
    got = cp.load_file(path, 0, framework=blocks)
    assert [each[1] for each in got] == [data["0"], data["2"]]
    assert len(sizes) == 2 and sum(sizes) < 3 * 4096


def test_files_go_to_several_gpus_side_by_side(cp, two_gpus, tmp_path):
    files, expected = {}, []
    for number in range(6):
        raw = os.urandom(300007 + number)
        path = pt.save(tmp_path / str(number), [pt.tensor(
            "ByteStorage", "0", len(raw), (len(raw),))], {"0": raw})
        files[path] = number % 2
        expected.append(raw)
    blocks = CheckpointBlocks(two_gpus)
    got = cp.load_files(files, framework=blocks, piece=65536)
    assert [each[0][1] for each in got] == expected
    got = cp.load_files(list(files), 1, framework=blocks)
    assert [each[0][1] for each in got] == expected


def test_what_is_the_same_object_stays_it(cp, numpy, tmp_path):
    same = pt.tensor("FloatStorage", "0", 5, (5,))
    value = {"a": same, "b": same, "list": [1]}
    value["also"], value["self"] = value["list"], value
    path = pt.save(tmp_path / "c.pt", value, {"0": os.urandom(20)})
    got = cp.load_file(path, framework="numpy")
    assert got["a"] is got["b"] and got["list"] is got["also"] and got["self"] is got


def test_dtypes_that_numpy_lacks_are_refused_before_the_read(cp, numpy, tmp_path):
    try:
        import ml_dtypes  # noqa: F401
        pytest.skip("ml_dtypes gives NumPy this dtype")
    except ImportError:
        pass
    path = pt.save(tmp_path / "c.pt", pt.tensor("BFloat16Storage", "0", 4, (4,)),
                   {"0": bytes(8)})
    with pytest.raises(cp.CheckpointError, match="byte .*NumPy has no dtype bfloat16"):
        cp.load_file(path, framework="numpy")


# ------------------------------------------------------------------- saving

def saved_and_loaded(cp, value, path, **options):
    cp.save_file(value, path, **options)
    return cp.load_file(path, framework="numpy")


def test_what_was_saved_is_loaded_and_a_sound_zip_file(cp, numpy, tmp_path):
    random = numpy.random.default_rng()
    arrays = {name: random.integers(0, 100, shape).astype(dtype)
              for name, dtype, shape in (
                  ("a", "f4", (3, 5)), ("b", "u1", (70007,)), ("c", "i8", ()),
                  ("d", "c16", (2, 2)), ("e", "?", (9,)), ("f", "f2", (0, 3)),
                  ("g", "u2", (7,)))}
    plain = [1, -5, 1 << 40, -(1 << 90), 2.5, None, True, False, "é", b"\x00\xff",
             (1, (2,)), {3, 4}, {"lr": 0.1, 7: ()}, []]
    ordered = OrderedDict(arrays)
    ordered._metadata = {"": {"version": 2}}
    path = tmp_path / "saved.pt"
    got = saved_and_loaded(cp, {"arrays": ordered, "plain": plain}, path)
    assert got["plain"] == plain and type(got["arrays"]) is OrderedDict
    assert got["arrays"]._metadata == ordered._metadata
    for name, array in arrays.items():
        assert got["arrays"][name].dtype == array.dtype, name
        assert got["arrays"][name].shape == array.shape, name
        assert got["arrays"][name].tobytes() == array.tobytes(), name
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert file.read("archive/version") == b"3\n"
    assert os.listdir(tmp_path) == ["saved.pt"]


def test_saving_the_same_twice_gives_the_same_bytes(cp, numpy, tmp_path):
    value = {"a": numpy.arange(5000), "s": {"x", "y", "z"}, "b": [numpy.ones(3)]}
    for name in "ab":
        cp.save_file(value, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_arrays_that_overlap_are_saved_once_and_share_again(cp, numpy, tmp_path):
    whole = numpy.arange(100_000, dtype="i4")
    value = {"whole": whole, "part": whole[100:300], "other": whole[:7].copy(),
             "again": whole}
    got = saved_and_loaded(cp, value, tmp_path / "c.pt")
    assert numpy.shares_memory(got["whole"], got["part"])
    assert not numpy.shares_memory(got["whole"], got["other"])
    assert got["again"] is got["whole"]
    assert all((got[name] == value[name]).all() for name in value)
    assert (tmp_path / "c.pt").stat().st_size < 420_000


def test_of_memory_that_is_not_shown_nothing_is_saved(cp, numpy, tmp_path):
    whole = numpy.arange(1 << 20)
    got = saved_and_loaded(cp, [whole[5:9], whole[-3:]], tmp_path / "c.pt")
    assert got[0].tolist() == [5, 6, 7, 8] and len(got[1]) == 3
    assert (tmp_path / "c.pt").stat().st_size < 5000


def test_containers_that_hold_themselves_come_back_so(cp, numpy, tmp_path):
    value = {"list": [1]}
    value["list"] += [value, value["list"]]
    got = saved_and_loaded(cp, value, tmp_path / "c.pt")
    assert got["list"][1] is got and got["list"][2] is got["list"]


class Tensor:
    """Of a framework whose tensors may be in sets and keys; torch's may."""

    def __init__(self, numpy):
        self.values = numpy.arange(4)
        self.dtype, self.shape = self.values.dtype, self.values.shape
        self.__cuda_array_interface__ = self.values.__array_interface__


def nested(depth, value=1):
    for _ in range(depth):
        value = (value,)
    return value


def test_keys_that_are_saved_are_loaded(cp, numpy, tmp_path):
    keys = [1, 1.5, "a", b"a", None, False, (), (2, "b", (None,)), nested(8)]
    value = {"keys": dict.fromkeys(keys, 7), "set": set(keys)}
    assert saved_and_loaded(cp, value, tmp_path / "c.pt") == value


def test_keys_that_could_not_be_loaded_are_not_saved(cp, numpy, tmp_path):
    tensor = Tensor(numpy)
    for key in (tensor, (1, tensor), nested(9), frozenset([1]), nested(2, tensor)):
        for bad in ({key}, {key: 1}, OrderedDict({key: 1}), [{"a": {key}}]):
            with pytest.raises(cp.CheckpointError, match="c.pt: a .* as a key or in"):
                cp.save_file(bad, tmp_path / "c.pt")
    assert os.listdir(tmp_path) == []


def test_tensors_of_a_metadata_are_saved_as_all_others(cp, numpy, tmp_path):
    value = OrderedDict(a=1)
    value._metadata = {"": {"version": numpy.arange(5)}}
    got = saved_and_loaded(cp, value, tmp_path / "c.pt")
    assert got._metadata[""]["version"].tolist() == list(range(5))


def test_a_dtype_that_could_not_be_loaded_is_not_saved(cp, tmp_path, monkeypatch):
    import types

    class Dtype:
        def __str__(self):
            return "torch.qint8"

    torch = types.SimpleNamespace(Tensor=Tensor, dtype=Dtype, Size=None, device=None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(cp.CheckpointError, match="Dtype is no tensor"):
        cp.save_file([Dtype()], tmp_path / "c.pt")


def test_a_save_without_checksums_is_loaded(cp, numpy, tmp_path):
    value = {"a": numpy.arange(100_000)}
    got = saved_and_loaded(cp, value, tmp_path / "c.pt", crc=False)
    assert (got["a"] == value["a"]).all()


def test_gpu_arrays_are_saved_from_where_they_are(cp, gpu, numpy, tmp_path):
    data = os.urandom(4 * 300007)
    array = gpu.array(len(data), data)

    class Tensor:
        dtype, shape = numpy.dtype("f4"), (300007,)
        __cuda_array_interface__ = array.__cuda_array_interface__

    got = saved_and_loaded(cp, {"w": Tensor()}, tmp_path / "saved")
    assert got["w"].tobytes() == data
    with zipfile.ZipFile(tmp_path / "saved") as file:
        assert file.testzip() is None


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


def test_a_save_that_fails_leaves_the_old_file(cp, numpy, tmp_path):
    path = tmp_path / "model"
    cp.save_file({"a": numpy.ones(3)}, path)
    before = path.read_bytes()
    odd = OrderedDict()
    odd.extra = 1
    for bad, error, says in (
            (numpy.ones((4, 4))[:, 1], ValueError, "contiguous"),
            (numpy.ones(3, ">f4"), cp.CheckpointError, "no dtype"),
            (numpy.array([None]), cp.CheckpointError, "no dtype"),
            (numpy.float64(1), cp.CheckpointError, "numpy.float64 is no tensor"),
            (object(), cp.CheckpointError, "object is no tensor"),
            (print, cp.CheckpointError, "no tensor"), (1 << 3000, cp.CheckpointError,
                                                       "a number of 376 bytes"),
            (odd, cp.CheckpointError, "attributes .'extra'"),
            (deep(), cp.CheckpointError, "nested too deep")):
        with pytest.raises(error, match=says):
            cp.save_file({"a": numpy.ones(3), "b": bad}, path)
    with pytest.raises(TypeError, match="path"):
        cp.save_file({}, 1)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


# ----------------------------------------------------- PyTorch, the reference

@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def same_bits(torch, a, b):
    assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
    assert a.requires_grad == b.requires_grad and type(a) is type(b)
    raw = [each.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
           for each in (a, b)]
    return torch.equal(*raw)


def compare(torch, a, b):
    """The same tree, bit by bit; returns how many tensors."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert same_bits(torch, a, b)
        return 1
    if isinstance(a, dict):
        assert list(a) == list(b)
        assert getattr(a, "_metadata", None) == getattr(b, "_metadata", None)
        return sum(compare(torch, a[key], b[key]) for key in a)
    if type(a) in (list, tuple):
        assert len(a) == len(b)
        return sum(compare(torch, *pair) for pair in zip(a, b))
    assert a == b
    return 0


def training(torch, device="cpu"):
    """What a training loop saves, and what is odd about tensors."""
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8),
                                torch.nn.Linear(8, 700)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    base = torch.randn(40, 50, device=device)
    names = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16",
             "bfloat16", "float32", "float64", "complex64", "complex128", "uint16",
             "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"]
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
            "parameters": list(model.parameters()), "epoch": 3, "best": 0.25,
            "base": base, "turned": base.t(), "row": base[7], "step": base[::2, 1::3],
            "wide": base[0].expand(4, 50), "empty": base[:0], "scalar": base[1, 1],
            "leaf": torch.ones(3, device=device, requires_grad=True),
            "dtypes": {name: torch.randint(0, 2, (5, 7), device=device).to(
                getattr(torch, name)) for name in names if hasattr(torch, name)},
            "size": torch.Size([1, 2]), "dtype": torch.bfloat16,
            "device": torch.device("cuda", 1), "text": ["a", b"\xff", {1, 2}]}


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_what_pytorch_saved_is_what_torch_load_gives(cp, torch, tmp_path, protocol):
    path = tmp_path / "c.pt"
    torch.save(training(torch), path, pickle_protocol=protocol)
    # which knows protocol 2 alone where it runs nothing; this file is ours
    expected = torch.load(path, weights_only=protocol == 2)
    got = cp.load_file(path)
    assert compare(torch, expected, got) > 40
    assert got["row"].data_ptr() == got["base"].data_ptr() + 7 * 50 * 4
    got["base"][7, 7] = 42
    assert got["row"][7] == 42 and got["turned"][7, 7] == 42


@pytest.mark.parametrize("align", [1, 8, 64])
def test_pytorch_gets_tensors_at_any_offset_of_a_file(cp, torch, tmp_path, align):
    value, data = state()
    path = pt.save(tmp_path / "c.pt", value, data, align=align)
    got, expected = cp.load_file(path), torch.load(path, weights_only=False)
    assert compare(torch, expected["model"], got["model"]) == 2
    assert compare(torch, expected, {**got, "model": expected["model"]}) > 9
    assert all(each.data_ptr() % each.element_size() == 0 for each in got.values()
               if isinstance(each, torch.Tensor))


def test_what_we_saved_torch_load_reads(cp, torch, tmp_path):
    value = training(torch)
    cp.save_file(value, tmp_path / "c.pt")
    for load in (lambda path: torch.load(path, weights_only=True), cp.load_file,
                 lambda path: torch.load(path, weights_only=True, mmap=True)):
        got = load(tmp_path / "c.pt")
        assert compare(torch, torch_plain(torch, value), got) > 40
        assert got["row"].data_ptr() == got["base"].data_ptr() + 7 * 50 * 4
    optimizer = torch.optim.AdamW(value["parameters"])
    optimizer.load_state_dict(cp.load_file(tmp_path / "c.pt")["optimizer"])


def torch_plain(torch, value):
    """The value as torch.save and torch.load would have it."""
    import io
    text = io.BytesIO()
    torch.save(value, text)
    text.seek(0)
    return torch.load(text, weights_only=True)


@pytest.mark.parametrize("limit, says", [
    ("MAX_PICKLE", "texts and bytes are more than the 1000 that are allowed"),
    ("MAX_DIRECTORY", "a directory of .* longer than the 1000 that are allowed")])
def test_what_is_too_long_to_be_loaded_is_refused_and_leaves_what_was_there(
        cp, numpy, tmp_path, monkeypatch, limit, says):
    import cufile.checkpoint._save as save
    path, value = tmp_path / "c.pt", [numpy.arange(3) for _ in range(30)]
    path.write_bytes(b"before")
    monkeypatch.setattr(save, limit, 1000)
    with pytest.raises(cp.CheckpointError, match=says):
        cp.save_file(value, path)
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["c.pt"]
    monkeypatch.undo()
    cp.save_file(value, path)
    assert len(cp.load_file(path, framework="numpy")) == 30


def test_tensors_that_are_more_than_tensors_are_refused(cp, torch, tmp_path):
    class Mine(torch.Tensor):
        pass

    for bad, says in ((torch.ones(3).to_sparse(), "layout"),
                      (torch.ones(3).as_subclass(Mine), "more than a tensor"),
                      (torch.ones(2, dtype=torch.complex64).conj(), "conjugated"),
                      (torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
                       "no dtype")):
        with pytest.raises(cp.CheckpointError, match=says):
            cp.save_file([bad], tmp_path / "c.pt")
    for bad, says in ((torch.ones(3).to_sparse(), "_rebuild_sparse"),
                      (torch.nn.Linear(2, 2), "wants torch.nn"),
                      (torch.ones(2, dtype=torch.complex64).conj(), "conjugated")):
        torch.save([bad], tmp_path / "c.pt")
        with pytest.raises(cp.CheckpointError, match=says):
            cp.load_file(tmp_path / "c.pt")


def test_the_old_format_and_torchscript_are_named(cp, torch, tmp_path):
    path = tmp_path / "c.pt"
    torch.save({"a": torch.ones(3)}, path, _use_new_zipfile_serialization=False)
    with pytest.raises(cp.CheckpointError, match="before PyTorch 1.6"):
        cp.load_file(path)
    records = [pt.Record("data.pkl", b"\x80\x02N."), pt.Record("constants.pkl", b"x")]
    with pytest.raises(cp.CheckpointError, match="TorchScript"):
        cp.load_file(pt.write(path, records))


def test_checkpoints_go_to_a_gpu_and_come_from_there(cp, torch, tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    value = training(torch, "cuda")
    value["large"] = torch.randint(0, 256, (100_000_007,), dtype=torch.uint8,
                                   device="cuda")
    torch.save(value, tmp_path / "c.pt")
    expected = torch.load(tmp_path / "c.pt", weights_only=True, map_location="cuda")
    for direct in (False, True):
        got = cp.load_file(tmp_path / "c.pt", "cuda", direct=direct)
        assert got["large"].device.type == "cuda"
        assert compare(torch, expected, got) > 40
    cp.save_file(value, tmp_path / "mine.pt")
    assert compare(torch, expected, torch.load(tmp_path / "mine.pt",
                                               weights_only=True)) > 40


def test_the_package_is_imported_without_pytorch_and_numpy(cufile):
    import subprocess
    code = ("import sys; sys.modules['torch'] = sys.modules['numpy'] = None\n"
            "import cufile.checkpoint")
    subprocess.run([sys.executable, "-B", "-c", code], check=True,
                   env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
