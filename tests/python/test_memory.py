# SPDX-License-Identifier: Apache-2.0
"""Which objects are arrays to the package, and what it says about the others."""
import array
import ctypes
import mmap
import os

import pytest


class Interface:
    """An object with a __cuda_array_interface__ of the test's choice."""

    def __init__(self, **interface):
        self.__cuda_array_interface__ = interface


def interface(address, shape, typestr="|u1", **others):
    return Interface(shape=shape, typestr=typestr, data=(address, False),
                     version=3, **others)


@pytest.fixture
def numpy():
    return pytest.importorskip("numpy")


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def file(cufile, data_file):
    """A file of 4096 random bytes, open for both."""
    path, data = data_file(4096)
    with cufile.open(path, "r+") as file:
        file.data, file.path = data, path
        yield file


# ------------------------------------------------------------- what is taken

def test_objects_with_the_buffer_protocol_are_read_into(file):
    pages = mmap.mmap(-1, 4096)
    for target in (bytearray(100), array.array("d", [0.0] * 10),
                   (ctypes.c_int * 7)(), memoryview(bytearray(64))[8:40], pages):
        nbytes = memoryview(target).nbytes
        assert file.read(target) == nbytes
        assert bytes(memoryview(target).cast("B")) == file.data[:nbytes]


def test_read_only_buffers_are_written_from(file):
    source = os.urandom(300)
    for given in (source, memoryview(source), memoryview(bytearray(source)).toreadonly()):
        file.write(bytes(300))
        assert file.write(given) == 300
        assert file.path.read_bytes()[:300] == source


def test_numpy_arrays_of_any_shape_and_type_are_taken(file, numpy):
    for dtype in ("u1", ">i2", "f8", "c16", "?", "datetime64[s]", "S3", "U2",
                  [("a", "i4"), ("b", "f4", (2,))]):
        values = numpy.zeros((3, 4), dtype)
        assert file.read(values, file_offset=1) == values.nbytes
        assert values.tobytes() == file.path.read_bytes()[1:1 + values.nbytes]
        values.flags.writeable = False
        assert file.write(values, file_offset=9) == values.nbytes
        assert values.tobytes() == file.path.read_bytes()[9:9 + values.nbytes]


def test_numpy_arrays_without_dimension_or_elements_are_taken(file, numpy):
    scalar = numpy.zeros((), "i8")
    assert file.read(scalar) == 8 and scalar.tobytes() == file.data[:8]
    assert file.read(numpy.zeros((0, 5))) == 0
    assert file.read(numpy.zeros((4, 1, 6))[:, :, 1:1]) == 0
    # extents of one have strides that mean nothing
    assert file.read(numpy.zeros((4, 6))[1:2]) == 48


def test_a_range_of_memory_is_taken_by_address(cufile, file):
    target = (ctypes.c_char * 64)()
    memory = cufile.Memory(ctypes.addressof(target) + 8, 16, owner=target)
    assert file.read(memory) == 16
    assert target.raw == bytes(8) + file.data[:16] + bytes(40)
    assert "16 bytes" in repr(memory)


def whole(number):
    thing = type("Whole", (), {})
    thing.__index__ = lambda self: number
    return thing()


def test_numbers_of_other_kinds_are_taken_if_they_are_whole(cufile, file):
    target = (ctypes.c_char * 64)()
    address = ctypes.addressof(target)
    for numbers in ((whole(address), 16), (address, whole(16))):
        memory = cufile.Memory(*numbers, owner=target)
        assert file.read(memory) == 16
        assert target.raw[:16] == file.data[:16]
    for numbers in ((float(address), 16), (address, 16.0), (None, 0), ("8", 8)):
        with pytest.raises(TypeError):
            cufile.Memory(*numbers)


def test_numpy_s_numbers_are_whole(cufile, file, numpy):
    target = (ctypes.c_char * 64)()
    address = numpy.uint64(ctypes.addressof(target))
    assert file.read(cufile.Memory(address, numpy.int64(16), owner=target)) == 16
    assert target.raw[:16] == file.data[:16]


def test_a_cuda_array_interface_is_taken_with_shape_and_type(file, gpu):
    target = gpu.array(96)
    for shape, typestr in (((96,), "|u1"), ((3, 8), "<f4"), ((2, 3, 2), "<c8"),
                           ((96, 1), "|b1"), ((48,), "<V2")):
        target.set(bytes(96))
        assert file.read(interface(target.address, shape, typestr)) == 96
        assert target.get() == file.data[:96]
    strides = interface(target.address, (3, 8), "<f4", strides=(32, 4))
    assert file.read(strides) == 96
    assert file.read(interface(0, (0,))) == 0
    # strides of no elements mean nothing
    assert file.read(interface(0, (0, 4), "<f4", strides=(48, 12))) == 0
    assert target.guards_whole()


def test_a_buffer_cannot_shrink_while_it_is_described(cufile):
    target = bytearray(100)
    memory = cufile._memory.describe(target)
    with pytest.raises(BufferError):
        target.append(0)
    del memory
    target.append(0)


def test_dlpack_is_taken_where_there_is_nothing_else(file, numpy):
    class OnlyDlpack:
        def __init__(self, values):
            self.values = values

        def __dlpack__(self, **arguments):
            return self.values.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return self.values.__dlpack_device__()

    values = numpy.zeros((3, 5), "i4")
    if not hasattr(values, "__dlpack__"):
        pytest.skip("NumPy before 1.22 has none")
    assert file.read(OnlyDlpack(values)) == 60
    assert values.tobytes() == file.data[:60]
    with pytest.raises(ValueError, match="not contiguous"):
        file.read(OnlyDlpack(values[:, 1]))


# ------------------------------------------------------------ streams of GPUs

@pytest.mark.parametrize("stream", [1, 2, "own"])
def test_the_stream_of_an_array_is_waited_for(file, gpu, stream):
    """What a slow stream does to the array comes before the read."""
    delay = getattr(gpu.driver, "fakecuda_copy_delay_us", None)
    if delay is None:
        pytest.skip("only the fake driver can be slow by plan")
    target = gpu.array(4096)
    handle = gpu.stream() if stream == "own" else stream
    view = interface(target.address, (4096,), stream=handle)
    delay(100000)
    try:
        gpu.ok("cuMemsetD8Async", ctypes.c_uint64(target.address),
               ctypes.c_ubyte(7), ctypes.c_size_t(4096), ctypes.c_void_p(handle))
        delay(0)
        assert file.read(view) == 4096
    finally:
        delay(0)
    gpu.ok("cuCtxSynchronize")
    assert target.get() == file.data


def test_a_stream_that_is_none_is_refused(file, gpu):
    target = gpu.array(16)
    for stream in (0, -1, "1", 1.0):
        with pytest.raises(ValueError, match="stream"):
            file.read(interface(target.address, (16,), stream=stream))


# ----------------------------------------------------------- what is refused

def refuse(file, thing, error, *says):
    """Neither a read nor a write happens, and the message says these words."""
    for call in (file.read, file.write, file.pread, file.pwrite):
        with pytest.raises(error) as caught:
            call(thing)
        for words in says:
            assert words in str(caught.value), str(caught.value)
    assert file.path.read_bytes() == file.data


@pytest.mark.parametrize("thing", [None, 5, 1.5, "text", [1, 2], {}, object(), len])
def test_what_is_no_array_is_refused_by_its_type(file, thing):
    refuse(file, thing, TypeError, type(thing).__name__, "no array")


def test_read_only_targets_are_refused(file, numpy):
    frozen = numpy.zeros(16)
    frozen.flags.writeable = False
    dates = numpy.zeros(16, "datetime64[s]")
    dates.flags.writeable = False
    cuda = Interface(shape=(16,), typestr="|u1", data=(4096, True), version=3)
    for target in (bytes(16), memoryview(bytes(16)), frozen, dates, cuda):
        for call in (file.read, file.pread):
            with pytest.raises(TypeError, match="destination is a read-only"):
                call(target)
    assert not frozen.any()


def test_arrays_with_gaps_are_refused_with_shape_and_strides(file, numpy):
    values = numpy.zeros((4, 6), "i4")
    for view in (values[:, 1], values[::2], values[:, ::-1], values.T,
                 values[::-1], numpy.broadcast_to(values[:1], (4, 6))):
        refuse(file, view, ValueError, "numpy.ndarray", str(view.shape),
               str(view.strides), "contiguous")
    refuse(file, memoryview(bytearray(100))[::2], ValueError, "contiguous")
    refuse(file, interface(4096, (4, 6), strides=(1, 4)), ValueError,
           "Interface", "(4, 6)", "(1, 4)")


def test_arrays_of_python_objects_are_refused(file, numpy):
    refuse(file, numpy.array([object(), 1]), TypeError, "Python objects")
    refuse(file, numpy.zeros(3, [("a", "i4"), ("b", "O")]), TypeError,
           "Python objects")
    refuse(file, interface(4096, (3,), "|O8"), TypeError, "Python objects")


def test_fields_may_have_any_name(file, numpy):
    class Row(ctypes.Structure):
        _fields_ = [("Offset", ctypes.c_int32), ("O", ctypes.c_int32)]

    class Held(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int64), ("b", ctypes.py_object)]

    row, table = Row(), numpy.zeros(4, [("Offset", "i4"), ("TOO", "f4")])
    for values in (row, table):
        assert file.read(values) == memoryview(values).nbytes
        assert bytes(values) == file.data[:memoryview(values).nbytes]
    for values in (Held(), numpy.zeros(4, [("a", "i8"), ("b", object)])):
        with pytest.raises(TypeError, match="Python objects"):
            file.read(values)


@pytest.mark.parametrize("broken", [
    dict(), dict(shape=(4,), typestr="|u1"), dict(shape=4, typestr="|u1", data=(1, False)),
    dict(shape=(4,), typestr="|u1", data=1),
    dict(shape=("x",), typestr="|u1", data=(1, False)),
    dict(shape=(4,), typestr=None, data=(1, False)),
    dict(shape=(4,), typestr="u", data=(1, False)),
    dict(shape=(-4,), typestr="|u1", data=(1, False)),
    dict(shape=(4,), typestr="|u1", data=(0, False)),
    dict(shape=(2.5,), typestr="|u1", data=(4096, False)),
    dict(shape=("4",), typestr="|u1", data=(4096, False)),
    dict(shape=(4,), typestr="|u1", data=("4096", False)),
    dict(shape=(4,), typestr="|u1", data=(4096.5, False)),
    dict(shape=(2, 2), typestr="|u1", data=(4096, False), strides=(1,)),
    dict(shape=(4,), typestr="|u1", data=(4096, False), strides=(4, 1)),
    dict(shape=(4,), typestr="|u1", data=(4096, False), strides=1),
    dict(shape=(4,), typestr="|u1", data=(4096, False), strides="a"),
    [("shape", (4,))],
])
def test_interfaces_that_are_not_whole_are_refused(file, broken):
    thing = Interface()
    thing.__cuda_array_interface__ = broken
    refuse(file, thing, ValueError)


def test_masked_arrays_are_refused(file):
    refuse(file, interface(4096, (4,), mask=object()), TypeError, "mask")


def test_numpy_s_masked_arrays_are_refused_and_what_they_mask_is_taken(file, numpy):
    array = numpy.ma.masked_array(numpy.zeros(4, "u1"), [0, 1, 0, 0])
    refuse(file, array, TypeError, "mask")
    assert file.read(array.data) == 4


def test_ranges_that_cannot_be_are_refused(cufile):
    for address, nbytes in ((0, 1), (-1, 1), (4096, -1), (1 << 64, 1),
                            (4096, 1 << 64), ((1 << 64) + 4096, 8)):
        with pytest.raises(ValueError):
            cufile.Memory(address, nbytes)


def test_dlpack_of_another_kind_of_device_is_refused(file):
    class Elsewhere:
        def __dlpack__(self, **_):
            raise AssertionError("not asked for")

        def __dlpack_device__(self):
            return (8, 3)

    refuse(file, Elsewhere(), TypeError, "Elsewhere", "(8, 3)")


def test_a_range_that_leaves_its_gpu_allocation_is_the_librarys_error(
        cufile, file, gpu):
    target = gpu.array(64)
    beyond = interface(target.base, (64 + 2 * 4096 + (1 << 30),))
    with pytest.raises(cufile.CuFileError) as caught:
        file.read(beyond, size=4096 * 4096, dst_offset=1 << 20)
    assert caught.value.name == "CU_FILE_CUDA_POINTER_RANGE_ERROR"
    assert caught.value.filename == file.path
    assert target.guards_whole()


# ------------------------------------------------------------------- PyTorch

def test_tensors_of_pytorch_are_taken(file, torch):
    for dtype in (torch.uint8, torch.bfloat16, torch.float32, torch.complex64,
                  torch.bool, torch.float8_e4m3fn):
        tensor = torch.zeros((3, 5), dtype=dtype)
        nbytes = tensor.numel() * tensor.element_size()
        assert file.read(tensor, file_offset=2) == nbytes
        back = bytes(tensor.view(torch.uint8).numpy().tobytes())
        assert back == file.data[2:2 + nbytes]
    parameter = torch.nn.Parameter(torch.zeros(16))
    assert file.read(parameter) == 64
    storage = torch.zeros(16).untyped_storage()
    assert file.read(storage) == 64
    assert bytes(storage) == file.data[:64]


def test_tensors_of_pytorch_on_a_gpu_are_taken(file, torch):
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    for dtype in (torch.uint8, torch.bfloat16, torch.float32):
        tensor = torch.zeros(512, dtype=dtype, device="cuda", requires_grad=False)
        nbytes = tensor.numel() * tensor.element_size()
        assert file.read(tensor) == nbytes
        assert tensor.cpu().view(torch.uint8).numpy().tobytes() == file.data[:nbytes]


def test_tensors_that_are_no_piece_of_memory_are_refused(file, torch):
    refuse(file, torch.zeros((4, 6))[:, 1], ValueError, "(4,)", "contiguous")
    refuse(file, torch.zeros((4, 6)).T, ValueError, "contiguous")
    refuse(file, torch.zeros(4, device="meta"), TypeError, "'meta'")
    refuse(file, torch.zeros((4, 4)).to_sparse(), TypeError, "sparse")
    refuse(file, torch.zeros(4, dtype=torch.complex64).conj(), ValueError, "conj")


def test_arrays_of_cupy_are_taken(file):
    cupy = pytest.importorskip("cupy")
    values = cupy.zeros((8, 16), "f4")
    assert file.read(values) == values.nbytes
    assert values.tobytes() == file.data[:values.nbytes]
    with pytest.raises(ValueError, match="contiguous"):
        file.read(values[:, 1])
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        values = cupy.full(1024, 7, "u1")
        assert file.read(values) == 1024
    assert values.tobytes() == file.data[:1024]


def test_arrays_of_numba_are_taken(file):
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("numba sees no GPU")
    values = cuda.device_array((8, 16), "f4")
    assert file.read(values) == 512
    assert values.copy_to_host().tobytes() == file.data[:512]
