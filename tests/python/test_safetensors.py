# SPDX-License-Identifier: Apache-2.0
"""cufile.safetensors: good files bit by bit, bad files with what and where."""
import gc
import json
import os

import pytest

from blocks import ModelBlocks
from conftest import descriptors_of

SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "I32": 4,
         "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8}


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def encode(header):
    return header if isinstance(header, bytes) else json.dumps(header).encode()


def write(path, header, data=b"", length=None, align=8):
    text = encode(header)
    text += b" " * (-(8 + len(text)) % align)
    length = len(text) if length is None else length
    path.write_bytes(length.to_bytes(8, "little") + text + data)
    return path


def contents(shapes):
    """A header and random data for {name: (dtype, shape)}, in that order."""
    header, end, data = {}, 0, []
    for name, (dtype, shape) in shapes.items():
        nbytes = SIZES[dtype]
        for extent in shape:
            nbytes *= extent
        raw = os.urandom(nbytes)
        if dtype == "BOOL":
            raw = bytes(byte & 1 for byte in raw)
        header[name] = entry(dtype, shape, (end, end + nbytes))
        end += nbytes
        data.append(raw)
    return header, dict(zip(shapes, data))


MODEL = {"embed": ("F32", (300, 70)), "scalar": ("F64", ()), "bias": ("F16", (9,)),
         "mask": ("BOOL", (5, 3)), "none": ("I32", (0, 4)), "ids": ("I64", (33,)),
         "spin": ("C64", (4,)), "u": ("U8", (1, 1, 7)), "odd": ("I16", (3,)),
         "last": ("U32", (100, 11))}


@pytest.fixture
def st(cufile):
    import cufile.safetensors as module
    return module


@pytest.fixture
def numpy():
    return pytest.importorskip("numpy")


@pytest.fixture
def model(tmp_path):
    header, data = contents(MODEL)
    header["__metadata__"] = {"format": "np"}
    return write(tmp_path / "model.safetensors", header, b"".join(data.values())), data


# ------------------------------------------------------------------ loading

def test_a_file_is_loaded_bit_by_bit(st, numpy, model):
    path, data = model
    got = st.load_file(path, framework="numpy")
    assert set(got) == set(data)
    for name, (_, shape) in MODEL.items():
        assert got[name].shape == shape, name
        assert got[name].tobytes() == data[name], name
    assert str(got["spin"].dtype) == "complex64"
    assert not descriptors_of(path)


@pytest.mark.parametrize("align", [1, 8, 4096])
@pytest.mark.parametrize("threads", [1, 5])
def test_a_file_is_loaded_into_one_gpu_block_bit_by_bit(st, gpu, tmp_path, align,
                                                        threads):
    header, data = contents({**MODEL, "large": ("F32", (3 << 18,))})
    path = write(tmp_path / "m", header, b"".join(data.values()), align=align)
    blocks = ModelBlocks(gpu)
    got = st.load_file(path, "gpu", framework=blocks, piece=65536, threads=threads)
    assert got == data
    assert len(blocks.made) == 1
    gc.collect()
    assert blocks.made[0]() is None


def test_tensors_at_odd_offsets_are_copied_into_place(st, numpy, tmp_path):
    header, data = contents({"u": ("U8", (3,)), "f": ("F32", (5,)),
                             "d": ("F64", (2, 2))})
    path = write(tmp_path / "m", header, b"".join(data.values()), align=1)
    got = st.load_file(path, framework="numpy")
    assert {name: value.tobytes() for name, value in got.items()} == data
    assert all(value.flags.aligned for value in got.values())


def test_several_files_are_loaded_to_several_devices(st, gpu, tmp_path):
    expected, files = {}, {}
    for number in range(5):
        header, data = contents({f"{number}.a": ("F32", (50001,)),
                                 f"{number}.b": ("I8", (number,))})
        path = write(tmp_path / str(number), header, b"".join(data.values()))
        files[path] = f"gpu:{number % 2}"
        expected.update(data)
    blocks, devices = ModelBlocks(gpu), []
    plain = blocks.empty
    blocks.empty = lambda nbytes, device: (devices.append(device),
                                           plain(nbytes, device))[1]
    assert st.load_files(files, framework=blocks, piece=8192) == expected
    assert devices == list(files.values())
    assert st.load_files(list(files), "gpu:0", framework=blocks) == expected
    assert devices[5:] == ["gpu:0"] * 5


def test_every_gpu_gets_its_files(st, two_gpus, tmp_path):
    class Blocks(ModelBlocks):
        """Each tensor with the GPU that its memory is on."""

        def empty(self, nbytes, device):
            return two_gpus[device].array(nbytes)

        def view(self, block, start, tensor):
            data = block.get()[start:start + tensor.stop - tensor.start]
            assert block.guards_whole()
            return two_gpus.index(block.gpu), data

    expected, files = {}, {}
    for number in range(6):
        header, data = contents({f"{number}": ("F32", (300007 + number,))})
        files[write(tmp_path / str(number), header, *data.values())] = number % 2
        expected[f"{number}"] = (number % 2, data[f"{number}"])
    assert st.load_files(files, framework=Blocks(None), piece=131072) == expected


@pytest.mark.parametrize("only, blocks", [
    ([], 0), (["embed"], 1), ({"last", "odd"}, 1), (("mask", "scalar"), 1),
    (lambda name: len(name) == 4, 1), (["none"], 1), (set(MODEL), 1)])
def test_tensors_that_are_wanted_are_loaded_and_no_others(st, gpu, model, only, blocks):
    path, data = model
    made = ModelBlocks(gpu)
    tells = only if callable(only) else only.__contains__
    want = {name: raw for name, raw in data.items() if tells(name)}
    assert st.load_file(path, only=only, framework=made) == want
    assert len(made.made) == blocks


def test_what_lies_between_wanted_tensors_is_not_read(st, gpu, tmp_path):
    header, data = contents({f"t{i}": ("U8", (100_003 + i,)) for i in range(9)})
    path = write(tmp_path / "m", header, b"".join(data.values()))
    for _ in range(20):
        names = {name for name in data if os.urandom(1)[0] % 2}
        sizes = []

        class Sized(ModelBlocks):
            def empty(self, nbytes, device):
                sizes.append(nbytes)
                return super().empty(nbytes, device)

        got = st.load_file(path, only=names, framework=Sized(gpu), piece=65536)
        assert got == {name: data[name] for name in names}
        assert sum(sizes) <= sum(map(len, got.values())) + 4096 * len(names)


def test_a_wanted_tensor_that_is_nowhere_is_named_before_anything_is_made(
        st, gpu, model):
    path, _ = model
    made = ModelBlocks(gpu)
    with pytest.raises(st.SafetensorsError, match="'emb': is in none of 1 files"):
        st.load_file(path, only=["embed", "emb"], framework=made)
    with pytest.raises(TypeError, match="one name"):
        st.load_file(path, only="embed", framework=made)
    assert not made.made
    assert not descriptors_of(path)


def test_a_name_in_two_files_is_refused_before_anything_is_made(st, gpu, tmp_path):
    header, data = contents({"same": ("U8", (10,))})
    paths = [write(tmp_path / name, header, data["same"]) for name in "ab"]
    blocks = ModelBlocks(gpu)
    with pytest.raises(st.SafetensorsError, match="'same': is in .*a.* too") as caught:
        st.load_files(paths, framework=blocks)
    assert caught.value.path == paths[1]
    assert not blocks.made
    assert not any(descriptors_of(path) for path in paths)


def test_an_empty_model_is_a_model(st, numpy, tmp_path):
    path = write(tmp_path / "empty", {"__metadata__": {"a": "b"}})
    assert st.load_file(path, framework="numpy") == {}


def test_dtypes_that_numpy_lacks_are_refused_before_the_read(st, numpy, tmp_path):
    try:
        import ml_dtypes  # noqa: F401
        pytest.skip("ml_dtypes gives NumPy this dtype")
    except ImportError:
        pass
    path = write(tmp_path / "m", {"w": entry("BF16", (4,))}, bytes(8))
    with pytest.raises(st.SafetensorsError, match="'w': NumPy has no dtype bfloat16"):
        st.load_file(path, framework="numpy")


# ------------------------------------------------------------ hostile headers

def two(a, b):
    return {"a": entry("U8", (a[1] - a[0],), a), "b": entry("U8", (b[1] - b[0],), b)}


HOSTILE = {
    "nothing": (b"", b"", None, "no JSON|brace"),
    "no brace": (b'["a"]', b"", None, "does not begin with a brace"),
    "cut JSON": (b'{"a": {"dtype"', b"", None, "no JSON"),
    "two values": (b'{} {}', b"", None, "no JSON"),
    "not UTF-8": (b'{"\xff": 1}', b"", None, "no JSON"),
    "not a number": (b'{"a": NaN}', b"", None, "NaN is no number"),
    "huge number": (b'{"a": ' + b"9" * 100000 + b"}", b"", None, "100000 digits"),
    "deep": (b'{"a":' * 200000, b"", None, "nested too deep|no JSON"),
    "duplicate name": (b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                       b'"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
                       b"1", None, "'a' stands twice"),
    "duplicate key": (b'{"a":{"dtype":"U8","dtype":"I8","shape":[1],'
                      b'"data_offsets":[0,1]}}', b"1", None, "'dtype' stands twice"),
    "length of everything": ({}, b"", (1 << 64) - 1, "18446744073709551615 bytes"),
    "length above the limit": ({}, b"", 100_000_001, "100000001 bytes is longer"),
    "length above the file": ({}, b"", 9, "9 bytes does not fit"),
    "length in the header": ({"a": entry()}, bytes(8), 5, "no JSON"),
    "no dtype": ({"a": {"shape": [1], "data_offsets": [0, 1]}}, b"1", None,
                 "'a': has not exactly"),
    "one key more": ({"a": {**entry(), "x": 1}}, bytes(8), None, "has not exactly"),
    "no table": ({"a": 5}, b"", None, "'a': has not exactly"),
    "unknown dtype": ({"a": entry("F33")}, bytes(8), None, "'F33' is not known"),
    "dtype no text": ({"a": entry(["F32"])}, bytes(8), None, "is not known"),
    "shape no list": ({"a": {**entry(), "shape": 2}}, bytes(8), None, "the shape 2"),
    "negative extent": ({"a": entry(shape=(-2,))}, bytes(8), None, "the shape"),
    "fraction extent": ({"a": entry(shape=(2.0,))}, bytes(8), None, "the shape"),
    "true extent": ({"a": entry(shape=(True, 2))}, bytes(8), None, "the shape"),
    "many dimensions": ({"a": entry(shape=[1] * 33)}, bytes(4), None, "33 dimensions"),
    "overflowing shape": ({"a": entry(shape=[1 << 62, 4])}, bytes(8), None, "needs"),
    "wrapping shape": ({"a": entry(shape=[1 << 62, 1 << 2, 2])}, bytes(8), None,
                       "needs"),
    "zero times huge": ({"a": entry(shape=[0, 1 << 62], offsets=(0, 8))}, bytes(8),
                        None, "needs 0"),
    "huge times zero": ({"a": entry(shape=[1 << 40, 1 << 40, 0], offsets=(0, 0))},
                        b"", None, "'a': the shape .* than can be counted"),
    "huge beside zero": ({"a": entry(shape=[0, 1 << 62], offsets=(0, 0))}, b"", None,
                         "'a': the shape .* than can be counted"),
    "size too small": ({"a": entry(shape=(1,))}, bytes(8), None,
                       r"are 8, but shape \[1\] of F32 needs 4"),
    "wrong size of dtype": ({"a": entry("F64")}, bytes(8), None, "needs 16"),
    "offsets no pair": ({"a": entry(offsets=(0, 4, 8))}, bytes(8), None, "no pair"),
    "offsets no numbers": ({"a": entry(offsets=("0", 8))}, bytes(8), None, "no pair"),
    "negative offset": ({"a": entry(offsets=(-8, 0))}, bytes(8), None, "no pair"),
    "offsets swapped": ({"a": entry(offsets=(8, 0))}, bytes(8), None, "not in the data"),
    "end behind the data": ({"a": entry(offsets=(8, 16))}, bytes(8), None,
                            "8 to 16 are not in the data, which has 8"),
    "offset of everything": ({"a": entry(offsets=(0, (1 << 63) - 1))}, bytes(8), None,
                             "not in the data"),
    "overlap": (two((0, 5), (4, 8)), bytes(8), None,
                "'b': begins at 4, inside tensor 'a', which ends at 5"),
    "same bytes": (two((0, 8), (0, 8)), bytes(8), None, "inside tensor 'a'"),
    "gap": (two((0, 3), (4, 8)), bytes(8), None, "'b': begins at 4, after a gap of 1"),
    "gap at the front": ({"a": entry("U8", (7,), (1, 8))}, bytes(8), None, "gap of 1"),
    "rest": ({"a": entry("U8", (7,), (0, 7))}, bytes(8), None,
             "1 bytes of data belong to no tensor, behind tensor 'a'"),
    "a long shape": ({"a": entry(shape=[-1] * 100_000)}, bytes(8), None,
                     r"^.*'a': the shape .* -1, .* \.\.\. .*\] is no list of extents$"),
    "a long dtype": ({"a": entry("F" * 100_000)}, bytes(8), None, "is not known"),
    "a long name": ({"n" * 100_000: 5}, b"", None, "has not exactly"),
    "a long name twice": (b'{"' + b"n" * 100_000 + b'":1,"' + b"n" * 100_000 + b'":1}',
                          b"", None, "stands twice"),
    "metadata no table": ({"__metadata__": [1]}, b"", None, "__metadata__"),
    "metadata no texts": ({"__metadata__": {"a": 1}}, b"", None, "__metadata__"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_header_is_refused_by_file_and_number_and_leaves_nothing(
        st, gpu, tmp_path, what):
    header, data, length, says = HOSTILE[what]
    path = tmp_path / "hostile.safetensors"
    text = encode(header)
    length = len(text) if length is None else length
    path.write_bytes(length.to_bytes(8, "little") + text + data)
    blocks = ModelBlocks(gpu)
    with pytest.raises(st.SafetensorsError, match=says) as caught:
        st.load_file(path, framework=blocks)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1000 + len(str(path))
    assert not blocks.made
    assert not descriptors_of(path)


@pytest.mark.parametrize("nbytes", [0, 1, 7])
def test_a_file_too_short_for_a_header_is_refused(st, tmp_path, nbytes):
    path = tmp_path / "short"
    path.write_bytes(bytes(nbytes))
    with pytest.raises(st.SafetensorsError, match=f"{nbytes} bytes are too few"):
        st.load_file(path, framework="numpy")


def test_every_cut_of_a_good_file_is_refused(st, numpy, tmp_path):
    header, data = contents({"a": ("U8", (20,)), "b": ("F32", (3,))})
    path = write(tmp_path / "m", header, b"".join(data.values()))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(st.SafetensorsError):
            st.load_file(path, framework="numpy")


def test_every_changed_byte_of_a_header_loads_or_is_refused(st, numpy, tmp_path):
    """Whatever the byte, the answer is a model or a SafetensorsError."""
    header, data = contents({"a": ("U8", (20,)), "b": ("F32", (3,))})
    path = write(tmp_path / "m", header, b"".join(data.values()))
    whole = path.read_bytes()
    for place in range(len(whole) - 32):
        for byte in (0, 0x22, 0x39, 0x7d, 0xff):
            path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1:])
            try:
                st.load_file(path, framework="numpy")
            except st.SafetensorsError:
                pass


# ------------------------------------------------------------------- saving

def test_what_was_saved_is_loaded(cufile, st, numpy, tmp_path):
    path = tmp_path / "saved"
    random = numpy.random.default_rng()
    tensors = {name: random.integers(0, 100, shape).astype(dtype)
               for name, dtype, shape in (
                   ("a", "f4", (3, 5)), ("b", "u1", (7,)), ("c", "i8", ()),
                   ("d", "c8", (2, 2)), ("e", "?", (9,)), ("f", "f2", (0, 3)))}
    st.save_file(tensors, path, {"format": "np"})
    got = st.load_file(path, framework="numpy")
    assert set(got) == set(tensors)
    for name, value in tensors.items():
        assert got[name].dtype == value.dtype and got[name].shape == value.shape
        assert got[name].tobytes() == value.tobytes()
        assert got[name].flags.aligned
    with cufile.open(path) as file:
        header = st.read_header(file)
    assert header.metadata == {"format": "np"}
    assert header.data_start % 4096 == 0


def test_gpu_arrays_are_saved_from_where_they_are(st, gpu, numpy, tmp_path):
    data = os.urandom(4 * 300007)
    array = gpu.array(len(data), data)

    class Tensor:
        dtype, shape = numpy.dtype("f4"), (300007,)
        __cuda_array_interface__ = array.__cuda_array_interface__

    st.save_file({"w": Tensor()}, tmp_path / "saved")
    got = st.load_file(tmp_path / "saved", framework="numpy")
    assert got["w"].tobytes() == data


def test_a_saved_file_has_its_size_before_its_bytes(cufile, st, numpy, tmp_path,
                                                    monkeypatch):
    """So that all of them lie within it, see cufile-routes(7) of tmpfs."""
    sizes, write = [], cufile.File.write

    def noting(file, *arguments, **more):
        sizes.append(os.fstat(file.fileno()).st_size)
        return write(file, *arguments, **more)

    monkeypatch.setattr(cufile.File, "write", noting)
    st.save_file({"w": numpy.zeros(100003, "u1")}, tmp_path / "model")
    assert sizes and set(sizes) == {os.path.getsize(tmp_path / "model")}


def test_a_save_that_fails_leaves_the_old_file(st, numpy, tmp_path):
    path = tmp_path / "model"
    st.save_file({"a": numpy.ones(3)}, path)
    before = path.read_bytes()
    good = numpy.ones(3)
    for bad, error, says in (
            (numpy.ones((4, 4))[:, 1], ValueError, "'b': .*contiguous"),
            (numpy.ones(3, "c16"), st.SafetensorsError, "'b': .*no dtype"),
            (numpy.ones(3, ">f4"), st.SafetensorsError, "'b': .*no dtype"),
            (numpy.array([None]), st.SafetensorsError, "'b': .*no dtype"),
            ([1.0], TypeError, "'b': list has no dtype")):
        with pytest.raises(error, match=says):
            st.save_file({"a": good, "b": bad}, path)
    with pytest.raises(st.SafetensorsError, match="no name"):
        st.save_file({"__metadata__": good}, path)
    with pytest.raises(st.SafetensorsError, match="metadata"):
        st.save_file({"a": good}, path, {"a": 1})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


# ------------------------------------------------- PyTorch, and the reference

def test_tensors_of_pytorch_go_out_and_come_back(st, tmp_path):
    torch = pytest.importorskip("torch")
    tensors = {"a": torch.randn(33, 7), "b": torch.randn(5).bfloat16(),
               "c": torch.arange(4), "d": torch.tensor(True),
               "e": torch.randn(6).to(torch.float8_e4m3fn), "f": torch.zeros(0, 2)}
    st.save_file(tensors, tmp_path / "t")
    got = st.load_file(tmp_path / "t")
    for name, value in tensors.items():
        assert got[name].dtype == value.dtype and got[name].shape == value.shape
        assert torch.equal(got[name].reshape(-1).view(torch.uint8),
                           value.reshape(-1).view(torch.uint8)), name
    reference = pytest.importorskip("safetensors.torch")
    for name, value in reference.load_file(tmp_path / "t").items():
        assert torch.equal(value.reshape(-1).view(torch.uint8),
                           tensors[name].reshape(-1).view(torch.uint8)), name
    reference.save_file(tensors, tmp_path / "r", {"format": "pt"})
    got = st.load_file(tmp_path / "r")
    assert set(got) == set(tensors)
    for name, value in tensors.items():
        assert torch.equal(got[name].reshape(-1).view(torch.uint8),
                           value.reshape(-1).view(torch.uint8)), name


def test_tensors_of_pytorch_are_loaded_on_a_gpu(st, tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    tensors = {"a": torch.randn(1000, 777), "b": torch.randn(5).bfloat16(),
               "c": torch.randint(0, 256, (100_000_007,), dtype=torch.uint8)}
    st.save_file({name: value.cuda() for name, value in tensors.items()},
                 tmp_path / "t")
    for direct in (False, True):
        got = st.load_file(tmp_path / "t", "cuda", direct=direct)
        for name, value in tensors.items():
            assert got[name].device.type == "cuda"
            assert torch.equal(got[name].cpu(), value), name


# ----------------------------------------------------------------- progress

def test_long_work_draws_a_bar_and_short_work_does_not(cufile, capsys, monkeypatch):
    from cufile import _progress
    now = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    bar = _progress.Progress("loading", 4_000_000_000, True)
    bar.add(1_000_000_000)
    bar.end()
    assert capsys.readouterr().err == ""
    bar = _progress.Progress("loading", 4_000_000_000, True)
    now[0] += 1
    bar.add(1_000_000_000)
    now[0] += 1
    bar.add(3_000_000_000)
    bar.end()
    said = capsys.readouterr().err
    assert "loading [#######....................... ".rstrip() in said
    assert "1.00 of 4.00 GB, 1.0 GB/s" in said and said.endswith("2.0 GB/s \n")
    quiet = _progress.Progress("loading", 4, None)
    now[0] += 5
    quiet.add(4)
    quiet.end()
    assert capsys.readouterr().err == ""
