# SPDX-License-Identifier: Apache-2.0
"""What an array is to us: an address, a length, and who keeps it alive.

describe() takes anything with bytes in one piece: Memory, PyTorch tensors and
storages, __cuda_array_interface__ (CuPy, Numba), the buffer protocol (bytes,
bytearray, array, mmap, ctypes, NumPy), __array_interface__ (NumPy kinds the
buffer protocol lacks) and DLPack. What it refuses it refuses with a TypeError
for the kind of object, and a ValueError for its shape or layout.
"""
import ctypes
import operator
import re
import sys
from typing import Any, Callable, Optional, Sequence, Union

from . import _cuda

# A place for requests of no bytes: the library wants an address all the same.
_NOWHERE = ctypes.create_string_buffer(1)


class Memory:
    """A range of host or GPU memory.

    address   of the first byte
    nbytes    how many
    readonly  nothing may be written there
    owner     kept alive as long as this object is
    """
    __slots__ = ("address", "nbytes", "readonly", "owner", "_ready")

    def __init__(self, address: int, nbytes: int, readonly: bool = False,
                 owner: Any = None,
                 ready: Optional[Callable[[], None]] = None) -> None:
        # also numbers of NumPy, whose sums with others may be floats
        address, nbytes = operator.index(address), operator.index(nbytes)
        if nbytes < 0 or address < 0:
            raise ValueError(f"memory at {address} of {nbytes} bytes: neither "
                             "can be negative")
        if address + nbytes > 1 << 64:
            raise ValueError(f"memory at {address} of {nbytes} bytes ends behind "
                             "the last address")
        if nbytes and not address:
            raise ValueError(f"memory of {nbytes} bytes has no address")
        self.address = address or ctypes.addressof(_NOWHERE)
        self.nbytes = nbytes
        self.readonly = readonly
        self.owner = owner
        self._ready = ready

    def wait(self) -> None:
        """Waits for the GPU work queued on the array before."""
        if self._ready is not None:
            self._ready()

    def __repr__(self) -> str:
        kind = ", read-only" if self.readonly else ""
        return f"Memory({self.address:#x}, {self.nbytes} bytes{kind})"


def kind_of(thing: Any) -> str:
    """How messages call an object: its type, with its module if it has one."""
    cls = type(thing)
    if cls.__module__ == "builtins":
        return str(cls.__qualname__)
    return f"{cls.__module__}.{cls.__qualname__}"


def is_contiguous(shape: Sequence[int], strides: Sequence[int], unit: int) -> bool:
    """Are the elements in C order without gaps? strides count in units."""
    if 0 in shape:
        return True
    expected = unit
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _product(shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _not_contiguous(thing: Any, shape: Sequence[int], strides: Any) -> ValueError:
    return ValueError(
        f"{kind_of(thing)} of shape {tuple(shape)} and strides {tuple(strides)} "
        "is not contiguous in C order; make a contiguous copy, or pass its rows")


def _masked(thing: Any) -> TypeError:
    return TypeError(f"{kind_of(thing)} has a mask; its bytes are not all there "
                     "is to it")


# ------------------------------------------------------------------ PyTorch

def _from_torch(torch: Any, tensor: Any) -> Memory:
    device = tensor.device
    if device.type not in ("cpu", "cuda"):
        raise TypeError(f"a tensor on device '{device}' has no memory that can "
                        "be read or written; 'cpu' and 'cuda' have")
    if tensor.layout is not torch.strided:
        raise TypeError(f"a tensor of layout {tensor.layout} is not one piece "
                        "of memory; only torch.strided is")
    if not tensor.is_contiguous():
        raise _not_contiguous(tensor, tensor.shape, tensor.stride())
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError("a conjugated or negated view of a tensor has not "
                         "the bytes that it shows; resolve it first")
    ready = None
    if device.type == "cuda":
        def ready() -> None:
            torch.cuda.current_stream(device).synchronize()
    return Memory(tensor.data_ptr(), tensor.numel() * tensor.element_size(),
                  owner=tensor, ready=ready)


def _from_torch_storage(torch: Any, storage: Any) -> Memory:
    device = storage.device
    if device.type not in ("cpu", "cuda"):
        raise TypeError(f"a storage on device '{device}' has no memory that "
                        "can be read or written; 'cpu' and 'cuda' have")
    ready = None
    if device.type == "cuda":
        def ready() -> None:
            torch.cuda.current_stream(device).synchronize()
    return Memory(storage.data_ptr(), storage.nbytes(), owner=storage,
                  ready=ready)


# --------------------------------------------------- array interface protocols

# byte order, kind, bytes, and the unit of a date
_TYPESTR = re.compile(r"[<>|=]([A-Za-z])([0-9]+)(\[.*\])?")


def _itemsize(thing: Any, typestr: Any) -> int:
    match = _TYPESTR.fullmatch(typestr) if isinstance(typestr, str) else None
    if match is None:
        raise ValueError(f"{kind_of(thing)} has the type {typestr!r}, which is "
                         "none of the array interface")
    if match[1] == "O":
        raise TypeError(f"{kind_of(thing)} holds Python objects, not bytes")
    # text counts characters of four bytes
    return int(match[2]) * (4 if match[1] == "U" else 1)


def _from_interface(thing: Any, interface: Any, name: str) -> Memory:
    try:
        shape, typestr = interface["shape"], interface["typestr"]
        address, readonly = interface["data"]
        shape = tuple(map(operator.index, shape))
        strides = interface.get("strides")
        if strides is not None:
            strides = tuple(map(operator.index, strides))
        address = operator.index(address or 0)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{kind_of(thing)}: {name} is not complete: "
                         f"{error!r}") from None
    itemsize = _itemsize(thing, typestr)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"{kind_of(thing)} has the shape {shape}; no extent "
                         "can be negative")
    if interface.get("mask") is not None:
        raise _masked(thing)
    if strides is not None and (len(strides) != len(shape) or
                                not is_contiguous(shape, strides, itemsize)):
        raise _not_contiguous(thing, shape, strides)
    stream = interface.get("stream")
    ready = None
    if stream is not None:
        if not isinstance(stream, int) or stream <= 0:
            raise ValueError(f"{kind_of(thing)} names the stream {stream!r}, "
                             "which is none")

        def ready() -> None:
            _cuda.synchronize(stream, address)
    return Memory(address, _product(shape) * itemsize, bool(readonly), thing, ready)


def _from_buffer(thing: Any, view: memoryview) -> Memory:
    # names of fields are between colons
    if "O" in view.format and "O" in re.sub(":[^:]*:", "", view.format):
        raise TypeError(f"{kind_of(thing)} holds Python objects, not bytes")
    if not view.c_contiguous:
        raise _not_contiguous(thing, view.shape or (), view.strides or ())
    if not view.nbytes:
        return Memory(0, 0, view.readonly, view)
    if view.readonly:
        return _from_readonly_buffer(view)
    # the exported buffer stays locked, so it can neither move nor shrink
    first = ctypes.c_char.from_buffer(view)
    return Memory(ctypes.addressof(first), view.nbytes, False, first)


class _PyBuffer(ctypes.Structure):
    """Py_buffer of CPython: only its address is looked at."""
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object),
                ("rest", ctypes.c_char * 128)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.c_void_p]
_release_buffer.restype = None


def _from_readonly_buffer(view: memoryview) -> Memory:
    raw = ctypes.create_string_buffer(ctypes.sizeof(_PyBuffer))
    _get_buffer(view, raw, 0)
    address = ctypes.c_void_p.from_buffer(raw).value or 0
    _release_buffer(raw)
    # the memoryview itself keeps the exporter's bytes where they are
    return Memory(address, view.nbytes, True, view)


# ------------------------------------------------------------------- DLPack

class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int),
                ("device_id", ctypes.c_int), ("ndim", ctypes.c_int),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


_CPU_KINDS = (1, 3, 11)        # plain, pinned by CUDA, pinned by ROCm
_GPU_KINDS = (2, 13)           # CUDA, CUDA managed
_LEGACY_STREAM = 1

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_pointer.restype = ctypes.c_void_p


def _from_dlpack(thing: Any) -> Memory:
    kind, number = thing.__dlpack_device__()
    if kind not in _CPU_KINDS + _GPU_KINDS:
        raise TypeError(f"{kind_of(thing)} is on DLPack device "
                        f"({int(kind)}, {number}), which is neither host nor "
                        "CUDA memory")
    on_gpu = kind in _GPU_KINDS
    capsule = (thing.__dlpack__(stream=_LEGACY_STREAM) if on_gpu
               else thing.__dlpack__())
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    if tensor.strides:
        strides = [tensor.strides[i] for i in range(tensor.ndim)]
        if not is_contiguous(shape, strides, 1):
            raise _not_contiguous(thing, shape, strides)
    address = (tensor.data or 0) + tensor.byte_offset
    nbytes = (_product(shape) * tensor.bits * tensor.lanes + 7) // 8
    ready = None
    if on_gpu:
        def ready() -> None:
            _cuda.synchronize(_LEGACY_STREAM, address)
    # a capsule that nobody consumes frees its tensor when it goes
    return Memory(address, nbytes, False, capsule, ready)


# ------------------------------------------------------------------ the door

def describe(thing: Any, writable: bool = False, role: str = "buffer") -> Memory:
    """The Memory of an array; role is what messages call it."""
    memory = _describe(thing)
    if writable and memory.readonly:
        raise TypeError(f"the {role} is a read-only {kind_of(thing)}; nothing "
                        "can be read into it")
    return memory


def _describe(thing: Any) -> Memory:
    if isinstance(thing, Memory):
        return thing
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor"):
        if isinstance(thing, torch.Tensor):
            return _from_torch(torch, thing)
        if isinstance(thing, getattr(torch, "UntypedStorage", ())):
            return _from_torch_storage(torch, thing)
    interface = getattr(thing, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_interface(thing, interface, "__cuda_array_interface__")
    masked: Any = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(thing, masked.MaskedArray):
        raise _masked(thing)  # of which its buffer says nothing
    try:
        view = memoryview(thing)
    except (TypeError, ValueError, BufferError):
        return _describe_bufferless(thing)
    return _from_buffer(thing, view)


def _describe_bufferless(thing: Any) -> Memory:
    interface = getattr(thing, "__array_interface__", None)
    if interface is not None:
        return _from_interface(thing, interface, "__array_interface__")
    if hasattr(thing, "__dlpack__") and hasattr(thing, "__dlpack_device__"):
        return _from_dlpack(thing)
    raise TypeError(
        f"{kind_of(thing)} is no array: it has neither "
        "__cuda_array_interface__ nor the buffer protocol nor DLPack; an "
        "address needs a length, as cufile.Memory(address, nbytes)")


Buffer = Union[Memory, Any]
