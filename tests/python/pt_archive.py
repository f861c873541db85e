# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as torch.save writes them, made without PyTorch.

Pickles are made by Python's own pickle out of stand-ins that carry PyTorch's
names. Archives are written here, not by the package under test, so that any
number in them can be a lie and any record a hole of gigabytes.
"""
import contextlib
import io
import pickle
import struct
import sys
import types
import zlib
from collections import OrderedDict

STORAGES = {"FloatStorage": 4, "DoubleStorage": 8, "HalfStorage": 2,
            "LongStorage": 8, "IntStorage": 4, "ShortStorage": 2, "CharStorage": 1,
            "ByteStorage": 1, "BoolStorage": 1, "ComplexFloatStorage": 8,
            "BFloat16Storage": 2, "UntypedStorage": 1}


class Call:
    """Pickled as a call of <module>.<name> with these arguments."""

    def __init__(self, module, name, *arguments):
        self.thing, self.arguments = named(module, name), arguments

    def __reduce__(self):
        return self.thing, self.arguments


_names = {}


def named(module, name):
    """Something that pickle writes as this name."""
    if (module, name) not in _names:
        def thing():
            raise AssertionError("a name of a pickle was called")
        thing.__module__, thing.__name__, thing.__qualname__ = module, name, name
        _names[module, name] = thing
    return _names[module, name]


class Storage:
    def __init__(self, kind, key, numel, location="cpu"):
        module = "torch.storage" if kind == "UntypedStorage" else "torch"
        self.id = ("storage", named(module, kind), key, location, numel)


def tensor(kind, key, numel, shape, strides=None, offset=0, grad=False, dtype=None):
    """A tensor of the storage data/<key>, which has numel elements."""
    if strides is None:
        strides, step = [], 1
        for extent in reversed(shape):
            strides.insert(0, step)
            step *= extent
    more = () if dtype is None else (named("torch", dtype),)
    return Call("torch._utils", "_rebuild_tensor_v2" if dtype is None
                else "_rebuild_tensor_v3", Storage(kind, key, numel), offset,
                tuple(shape), tuple(strides), grad, OrderedDict(), *more)


class _Pickler(pickle.Pickler):
    def persistent_id(self, thing):
        return thing.id if isinstance(thing, Storage) else None


@contextlib.contextmanager
def _modules():
    """The names are found where they claim to be, for as long as this."""
    made = {module: types.ModuleType(module) for module, _ in _names}
    before = {module: sys.modules.get(module) for module in made}
    for (module, name), thing in _names.items():
        setattr(made[module], name, thing)
    sys.modules.update(made)
    try:
        yield
    finally:
        for module, old in before.items():
            if old is None:
                del sys.modules[module]
            else:
                sys.modules[module] = old


def pickled(value, protocol=2):
    text = io.BytesIO()
    with _modules():
        _Pickler(text, protocol).dump(value)
    return text.getvalue()


class Record:
    """A record; whatever is given by name replaces what would be right."""

    def __init__(self, name, data=b"", hole=0, align=64, **lies):
        self.name, self.data, self.hole, self.align = name, data, hole, align
        self.lies = lies

    @property
    def nbytes(self):
        return self.hole or len(self.data)


def write(path, records, zip64=True, lies=None, prefix="archive/", comment=b""):
    """Writes the archive; lies: of the end of the directory."""
    directory = b""
    with open(path, "wb") as file:
        for record in records:
            directory += _write_record(file, record, prefix)
        begin, count = file.tell(), len(records)
        end = {"count": count, "size": len(directory), "begin": begin,
               "disk": 0, **(lies or {})}
        file.write(directory)
        at = file.tell()
        if zip64:
            file.write(struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0,
                                   end["disk"], end["count"], end["count"],
                                   end["size"], end["begin"]))
            file.write(struct.pack("<4sIQI", b"PK\6\7", 0, end.get("at", at), 1))
        file.write(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, end["disk"],
                               end["count"] & 0xffff, end["count"] & 0xffff,
                               min(end["size"], 0xffffffff),
                               min(end["begin"], 0xffffffff), len(comment)))
        file.write(comment)
    return path


def _write_record(file, record, prefix):
    name = (record.name if record.lies.get("bare") else
            prefix + record.name).encode("utf-8", "surrogateescape")
    header, nbytes = file.tell(), record.nbytes
    method, flags = record.lies.get("method", 0), record.lies.get("flags", 0)
    told = record.lies.get("nbytes", nbytes)
    packed = record.lies.get("packed", told)
    pad = -(header + 30 + len(name) + 4) % record.align
    extra = record.lies.get("extra", struct.pack("<HH", 0x4246, pad) + bytes(pad))
    crc = 0 if record.hole else zlib.crc32(record.data)
    small = min(told, 0xffffffff)
    file.write(struct.pack("<4sHHHHHIIIHH", record.lies.get("magic", b"PK\3\4"), 45,
                           flags, method, 0, 0, crc, min(packed, 0xffffffff), small,
                           len(name), record.lies.get("extra_length", len(extra))))
    file.write(name + extra + record.data)
    file.seek(record.hole, 1)
    at = record.lies.get("header", header)
    wide = b"".join(struct.pack("<Q", number) for number, is_wide in (
        (told, told >= 0xffffffff), (packed, packed >= 0xffffffff),
        (at, at >= 0xffffffff)) if is_wide)
    if wide:
        wide = struct.pack("<HH", 1, len(wide)) + wide
    wide = record.lies.get("wide", wide)
    return struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 45, 45, flags, method, 0, 0,
                       crc, min(packed, 0xffffffff), small, len(name), len(wide), 0,
                       0, 0, 0, min(at, 0xffffffff)) + name + wide


def save(path, value, storages, protocol=2, align=64, more=(), **options):
    """A good checkpoint: value pickled, and {key: bytes} as its storages."""
    records = [Record("data.pkl", pickled(value, protocol)),
               Record("byteorder", sys.byteorder.encode()), *more]
    records += [Record(f"data/{key}", data, align=align)
                for key, data in storages.items()]
    return write(path, records + [Record("version", b"3\n")], **options)
