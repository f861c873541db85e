# SPDX-License-Identifier: Apache-2.0
"""cufile.checkpoint on bad files: what is wrong is said with file and byte,
nothing that they name is run, and nothing is allocated for them."""
import io
import os
import pickle
import random
import struct
import sys
import time

import pytest

import pt_archive as pt
from blocks import CheckpointBlocks
from conftest import descriptors_of

SECONDS = float(os.environ.get("OCF_FUZZ_SECONDS", "3"))
SEED = int(time.time()) if "OCF_FUZZ_SECONDS" in os.environ else 20261121
LEAST = 200  # of each kind, however slow the machine


@pytest.fixture(scope="module")
def cp(cufile):
    import cufile.checkpoint as module
    return module


class NoBlocks(CheckpointBlocks):
    """A framework that has everything, and must never be asked for memory."""

    def __init__(self):
        super().__init__(None)

    def empty(self, nbytes, device):
        raise AssertionError(f"{nbytes} bytes for a bad file")

    storage = tensor = parameter = empty


def refused(cp, path, says):
    with pytest.raises(cp.CheckpointError, match=says) as caught:
        cp.load_file(path, framework=NoBlocks())
    assert str(path) in str(caught.value)
    assert not descriptors_of(path)
    return str(caught.value)


# -------------------------------------------------------------------- pickles

def weight(*arguments, **options):
    return pt.pickled(pt.tensor(*arguments, **options))


def push(text):
    return b"X" + struct.pack("<I", len(text)) + text


P = b"\x80\x02"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
SET = b"c__builtin__\nset\n"
ENCODE = b"c_codecs\nencode\n"
DEEP = b"(" * 50_000 + b"t" * 50_000
# a tuple of ten, of the tuple before it ten times, and so on
WIDE = b"(" + b"N" * 10 + b"tq\x00" + (b"0(" + b"h\x00" * 10 + b"tq\x00") * 7
STORE = (b"(" + push(b"storage") + b"ctorch\nFloatStorage\n" + push(b"0") +
         push(b"cpu") + b"K\x0atQ")

PICKLES = {
    "a system call": (P + b"cos\nsystem\n" + push(b"touch x") + b"\x85R.",
                      "wants os.system"),
    "posix": (P + b"cposix\nsystem\n.", "wants posix.system"),
    "eval": (P + b"c__builtin__\neval\n.", "wants __builtin__.eval"),
    "getattr": (P + b"cbuiltins\ngetattr\n.", "wants builtins.getattr"),
    "a name of ours": (P + b"ccufile\nopen\n.", "wants cufile.open"),
    "a dotted name": (P + b"ctorch\n_utils.os.system\n.", "wants torch._utils.os"),
    "a name on the stack": (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "wants os.system"),
    "a name that is a number": (b"\x80\x04K\x01K\x02\x93.", "name that is no text"),
    "a name without an end": (P + b"c" + b"x" * 2000, "a name without an end"),
    "a name that is not UTF-8": (P + b"c\xff\nx\n.", "codec"),
    "protocol 0": (b"(lp0\n.", "instruction 0x6c is not known"),
    "instance": (P + b"(ios\nsystem\n.", "instruction 0x69 is not known"),
    "object": (P + b"(cos\nsystem\no.", "wants os.system"),
    "new object": (P + b"ccollections\nOrderedDict\n)\x81.", "0x81 is not known"),
    "extension": (P + b"\x82\x01.", "0x82 is not known"),
    "text id": (P + b"P0\n.", "0x50 is not known"),
    "next buffer": (b"\x80\x05\x97.", "0x97 is not known"),
    "protocol 9": (b"\x80\x09N.", "protocol 9"),
    "nothing": (b"", "byte 0: the pickle ends without an end"),
    "no end": (P + b"N", "byte 3: the pickle ends without an end"),
    "a number cut": (P + b"K", "byte 2: 1 bytes are wanted of 0"),
    "text cut": (P + b"X\xff\xff\xff\xffab", "4294967295 bytes are wanted of 2"),
    "text of everything": (b"\x80\x04\x8d" + b"\xff" * 8, "18446744073709551615 bytes"),
    "no value": (P + b".", "no value"),
    "two values": (P + b"NN.", "1 values are left over"),
    "a mark at the end": (P + b"(.", "no value"),
    "a mark below": (P + b"(N.", "1 values are left over"),
    "no mark": (P + b"t.", "no mark"),
    "pair from nothing": (P + b"N\x86.", "no value"),
    "through a mark": (P + b"N(\x85.", "no value"),
    "nothing to remember": (P + b"q\x00.", "no value to remember"),
    "never remembered": (P + b"j\xff\xff\xff\xff.", "remembered as 4294967295"),
    "remembered far": (P + b"Nr\xff\xff\xff\xff0.", "no value"),
    "append to none": (P + b"NNa.", "no list"),
    "items to a list": (P + b"](NNu.", "no dict"),
    "odd items": (P + b"}(Nu.", "key without a value"),
    "a list as a key": (P + b"}]Ns.", "a list as a key"),
    "a dict in a set": (b"\x80\x04\x8f(}\x90.", "a dict as a key"),
    "a key of a billion": (P + b"}" + WIDE + b"Ns.", "many more values than"),
    "a set of a billion": (b"\x80\x04\x8f(" + WIDE + b"\x90.", "many more values than"),
    "a frozen billion": (b"\x80\x04(" + WIDE + b"\x91.", "many more values than"),
    "a set made of a billion": (P + SET + b"(" + WIDE + b"t\x85R.",
                                "many more values than"),
    "keys again and again": (P + b"N" * 999 + b"(" + b"N" * 999 + b"tq\x000}(" +
                             b"h\x00N" * 99 + b"u.", "many more values than"),
    "a deep key": (P + b"}" + DEEP + b"Ns.", "a tuple as a key"),
    "a deep frozen key": (b"\x80\x04(" + DEEP + b"\x91.", "a tuple as a key"),
    "a deep set": (P + SET + b"(" + DEEP + b"t\x85R.", "a tuple as a key"),
    "a deep length": (P + b"(" + push(b"storage") + b"ctorch\nFloatStorage\n" +
                      push(b"0") + push(b"cpu") + DEEP + b"tQ.", "tuple is no length"),
    "a call of a number": (P + b"K\x01)R.", "a call of 1"),
    "a call with a list": (P + SET + b"]R.", "with a list"),
    "a call of a class": (P + b"ctorch\nFloatStorage\n)R.", "a call of FloatStorage"),
    "too many arguments": (P + SET + b"NN\x86R.", "set with 2 arguments"),
    "a set of a number": (P + SET + b"K\x05\x85R.", "no list"),
    "many sets of one list": (P + b"](" + b"N" * 1000 + b"e\x85q\x00" + (
        SET + b"h\x00R0") * 10 + b".", "much more than it holds"),
    "many bytes of one text": (P + push(b"x" * 10000) + b"q\x00" + (
        b"0" + ENCODE + b"h\x00" + push(b"latin1") + b"\x86R") * 5 + b".",
        "much more than it holds"),
    "bytes of rot13": (P + ENCODE + push(b"x") + push(b"rot13") + b"\x86R.", "latin1"),
    "attributes of a dict": (P + b"}}b.", "no OrderedDict"),
    "attributes of a word": (P + SET + b"}b.", "no OrderedDict"),
    "other attributes": (P + b"ccollections\nOrderedDict\n)R}" + push(b"items") +
                         b"Nsb.", "other than _metadata"),
    "a word as the value": (P + SET + b".", "set, which is no value"),
    "a word in a list": (P + b"]" + SET + b"a.", "set, which is no value"),
    "a word in tuples": (P + b"]" + SET + b"\x85\x85a.", "is no value"),
    "a word as a key": (P + b"}" + SET + b"Ns.", "a Word as a key"),
    "a bare storage": (P + STORE + b".", "a bare storage"),
    "an id of four": (P + b"(" + push(b"storage") + b"NNNtQ.", "no storage"),
    "an id of no storage": (P + b"N" + b"Q.", "no storage"),
    "an id of words": (P + b"(" + push(b"module") + SET + b"NNNtQ.", "no storage"),
    "a storage of sets": (P + b"(" + push(b"storage") + SET + b"NNNtQ.", "of the kind"),
    "a key that is a number": (P + b"(" + push(b"storage") + b"ctorch\nFloatStorage\n" +
                               b"K\x00" + push(b"cpu") + b"K\x0atQ.", "no text"),
    "a quantized storage": (P + b"ctorch\nQInt8Storage\n.", "wants torch.QInt8Storage"),
    "a sparse tensor": (P + b"ctorch._utils\n_rebuild_sparse_tensor\n.", "wants torch"),
    "a parameter of a number": (P + b"ctorch._utils\n_rebuild_parameter\n" +
                                b"K\x01\x88N\x87R.", "no tensor"),
    "no record": (weight("FloatStorage", "7", 10, (10,)), "no record 'data/7'"),
    "a record above": (weight("FloatStorage", "../data/0", 10, (10,)),
                       "no record 'data/../data/0'"),
    "a storage too long": (weight("FloatStorage", "0", 11, (10,)),
                           "44 bytes, but record 'data/0' has 40"),
    "a storage too short": (weight("FloatStorage", "0", 9, (9,)), "36 bytes, but"),
    "a storage of everything": (weight("FloatStorage", "0", (1 << 62) - 1, (1,)),
                                "but record 'data/0' has 40"),
    "a negative storage": (weight("FloatStorage", "0", -1, (1,)), "-1 is no length"),
    "a tensor too long": (weight("FloatStorage", "0", 10, (11,)),
                          "needs 44 bytes of storage '0', which has 40"),
    "an offset too far": (weight("FloatStorage", "0", 10, (1,), offset=10), "44 bytes"),
    "nothing far off": (weight("FloatStorage", "0", 10, (0,), offset=11), "44 bytes"),
    "a stride too wide": (weight("FloatStorage", "0", 10, (2,), (10,)), "44 bytes"),
    "a shape of everything": (weight("FloatStorage", "0", 10, (1 << 62, 1 << 62)),
                              "which has 40"),
    "a shape that wraps": (weight("FloatStorage", "0", 10, (1 << 62, 4), (0, 0)),
                           "which has 40"),
    "negative shape": (weight("FloatStorage", "0", 10, (-1,)), "-1 is no shape"),
    "negative stride": (weight("FloatStorage", "0", 10, (2,), (-1,)), "no stride"),
    "negative offset": (weight("FloatStorage", "0", 10, (2,), offset=-1), "no offset"),
    "a true extent": (weight("FloatStorage", "0", 10, (True,)), "True is no shape"),
    "fraction": (weight("FloatStorage", "0", 10, (2.0,), (1,)), "2.0 is no shape"),
    "fewer strides": (weight("FloatStorage", "0", 10, (2, 2), (1,)), "fit together"),
    "many dimensions": (weight("FloatStorage", "0", 10, (1,) * 65), "65 dimensions"),
    "gradient of integers": (weight("IntStorage", "0", 10, (2,), grad=True),
                             "int32 has no gradient"),
    "gradient of none": (weight("FloatStorage", "0", 10, (2,), grad=None), "no answer"),
    "untyped in v2": (weight("UntypedStorage", "0", 40, (2,)), "no typed storage"),
    "typed in v3": (weight("FloatStorage", "0", 10, (2,), dtype="int32"), "no untyped"),
    "a word of v3": (weight("UntypedStorage", "0", 40, (2,), dtype="qint8"), "wants"),
    "a deep dtype": (P + b"ctorch._utils\n_rebuild_tensor_v3\n((" + push(b"storage") +
                     b"ctorch.storage\nUntypedStorage\n" + push(b"0") + push(b"cpu") +
                     b"K\x28tQK\x00))\x89N" + b"]" * 50_000 + b"a" * 49_999 + b"tR.",
                     "a list is no dtype"),
    "a size of a list": (P + b"ctorch\nSize\n](" + b"K\x01" * 70 + b"e\x85R.",
                         "65 dimensions"),
    "v3 too long": (weight("UntypedStorage", "0", 40, (6,), dtype="uint64"), "48 bytes"),
    "hooks": (pt.pickled(pt.Call("torch._utils", "_rebuild_tensor_v2", pt.Storage(
        "FloatStorage", "0", 10), 0, (2,), (1,), False, {1: 2})), "hooks"),
    "few arguments": (P + TENSOR + STORE + b"\x85R.", "with 1 arguments"),
}


@pytest.mark.parametrize("what", PICKLES)
def test_a_hostile_pickle_is_refused_by_byte_and_runs_nothing(cp, tmp_path, what,
                                                              monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, says = PICKLES[what]
    path = pt.write(tmp_path / "c.pt", [pt.Record("data.pkl", text),
                                        pt.Record("data/0", os.urandom(40))])
    said = refused(cp, path, says)
    assert "archive/data.pkl, byte " in said
    assert len(said) < 1000
    assert os.listdir(tmp_path) == ["c.pt"]


class Evil:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("call", [(os.mkdir, ("ran",)), (eval, ("1+1",)),
                                  (exec, ("import os; os.mkdir('ran')",)),
                                  (io.open, ("ran", "w"))])
def test_code_in_a_checkpoint_is_not_run(cp, tmp_path, monkeypatch, protocol, call):
    monkeypatch.chdir(tmp_path)
    text = pickle.dumps({"weights": [Evil(*call)]}, protocol)
    path = pt.write(tmp_path / "c.pt", [pt.Record("data.pkl", text)])
    refused(cp, path, "wants .*which only torch.load may run")
    assert os.listdir(tmp_path) == ["c.pt"]


def test_depth_and_breadth_end_nothing(cp, tmp_path):
    """Lists in lists are a value; they are neither walked nor shown."""
    for text in (b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
                 b"\x80\x02]q\x00" + b"(h\x00h\x00e0h\x00" * 20 + b"e.",
                 b"\x80\x02)" + b"q\x00h\x00\x86" * 40 + b"."):
        path = pt.write(tmp_path / "c.pt", [pt.Record("data.pkl", text)])
        try:
            cp.load_file(path, framework=NoBlocks())
        except cp.CheckpointError:
            pass


# ------------------------------------------------------------------- archives

def good():
    return [pt.Record("data.pkl", weight("FloatStorage", "0", 10, (10,))),
            pt.Record("byteorder", sys.byteorder.encode()),
            pt.Record("data/0", bytes(range(40)), align=4096),
            pt.Record("version", b"3\n")]


def changed(number, **lies):
    records = good()
    records[number].lies = lies
    return records


def renamed(number, name):
    records = good()
    records[number].name = name
    return records


OTHER = b"big" if sys.byteorder == "little" else b"little"
ARCHIVES = {
    "compressed": (changed(2, method=8), {}, "'archive/data/0': is compressed"),
    "compressed pickle": (changed(0, method=8), {}, "data.pkl': is compressed"),
    "encrypted": (changed(2, flags=1), {}, "'archive/data/0': is encrypted"),
    "no header": (changed(2, magic=b"PK\3\5"), {}, "'archive/data/0': no header at"),
    "header elsewhere": (changed(2, header=1), {}, "reach into what begins at 1$"),
    "header behind the file": (changed(2, header=1 << 40), {}, "data/0': its 40 bytes"),
    "header of everything": (changed(2, header=(1 << 64) - 1), {}, "data/0': its 40"),
    "larger than its room": (changed(2, nbytes=4096), {}, "data/0': its 4096 bytes"),
    "larger than the file": (changed(2, nbytes=1 << 50), {}, "its 1125899906842624"),
    "reaches by its names": (changed(2, extra_length=60000), {}, "data/0': its 40 "),
    "of another size packed": (changed(2, packed=39), {}, "39 bytes are stored of 40"),
    "no wide numbers": (changed(2, nbytes=1 << 40, wide=b""), {}, "no 64-bit numbers"),
    "wide cut": (changed(2, nbytes=1 << 40, wide=b"\1\0\x10\0abc"), {}, "no 64-bit"),
    "twice": (good() + good()[2:3], {}, "'archive/data/0' stands twice"),
    "two pickles": (good() + [pt.Record("x/data.pkl", b"N.", bare=True)], {},
                    "2 records are called data.pkl"),
    "no pickle": (good()[1:], {}, "0 records are called data.pkl"),
    "no folder": (good(), {"prefix": ""}, "0 records are called data.pkl"),
    "a name that is no text": (renamed(2, "data/\udcff"), {}, "not UTF-8"),
    "another byte order": (good()[:1] + [pt.Record("byteorder", OTHER)] + good()[2:],
                           {}, "byte order b'" + OTHER.decode()),
    "a byte order of megabytes": (good()[:1] + [pt.Record("byteorder", hole=1 << 20)] +
                                  good()[2:], {}, "1048576 bytes are more than"),
    "a pickle of gigabytes": ([pt.Record("data.pkl", hole=1 << 31)], {}, "more than"),
    "more records": (good(), {"lies": {"count": 5}}, "has 4 records, and says .* 5"),
    "a directory too long": (good(), {"lies": {"size": 1 << 40}}, "is longer than"),
    "a directory elsewhere": (good(), {"lies": {"begin": 100}}, "does not end at"),
    "a directory behind": (good(), {"lies": {"begin": 1 << 63}}, "does not end at"),
    "an end elsewhere": (good(), {"lies": {"at": 1 << 40}}, "64-bit end"),
    "an end before": (good(), {"lies": {"at": 0}}, "no 64-bit end"),
    "other disks": (good(), {"lies": {"disk": 1}}, "parts in other files"),
    "a large directory and no 64-bit end": (
        good(), {"zip64": False, "lies": {"size": 1 << 40}}, "no 64-bit end"),
}


@pytest.mark.parametrize("what", ARCHIVES)
def test_a_hostile_archive_is_refused_by_record_and_number(cp, tmp_path, what):
    records, options, says = ARCHIVES[what]
    refused(cp, pt.write(tmp_path / "c.pt", records, **options), says)


@pytest.mark.parametrize("content, says", [
    (b"", "no zip archive"), (b"PK", "no zip archive"), (b"x" * 100_000, "no zip"),
    (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02", "before PyTorch 1.6"),
    (b"PK\3\4" + bytes(100), "is cut off: 104 bytes"),
    (b"PK\5\6" + bytes(18), "0 records are called")])
def test_what_is_no_archive_is_named(cp, tmp_path, content, says):
    path = tmp_path / "c.pt"
    path.write_bytes(content)
    refused(cp, path, says)


class Bytes(NoBlocks):
    """Blocks of host memory."""

    def empty(self, nbytes, device):
        assert nbytes < 1 << 16
        return bytearray(nbytes)

    def storage(self, block, start, stop):
        assert 0 <= start <= stop <= len(block)
        return block[start:stop]

    def tensor(self, storage, dtype, offset, shape, strides, requires_grad):
        return storage

    def parameter(self, tensor, requires_grad):
        return tensor


def loads(cp, path):
    """True if it loads; anything but CheckpointError is a failure."""
    try:
        cp.load_file(path, framework=Bytes())
    except cp.CheckpointError as error:
        assert str(path) in str(error) and len(str(error)) < 2000
        return False
    return True


def test_every_cut_of_a_good_file_is_refused(cp, tmp_path):
    records = good()
    records[2].align = 64
    path = pt.write(tmp_path / "c.pt", records)
    whole = path.read_bytes()
    assert loads(cp, path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert not loads(cp, path), length


def test_any_change_of_a_good_file_loads_or_is_refused_in_words(cp, tmp_path):
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    records = good()
    records[2].align = 64
    value = {"a": pt.tensor("FloatStorage", "0", 10, (2, 5)), "b": [1.5, (2, None)],
             "c": {b"x", "y"}, "d": pt.Call("torch", "Size", (1, 2))}
    path, end = tmp_path / "c.pt", time.monotonic() + SECONDS
    taken = refusals = 0
    while time.monotonic() < end or taken + refusals < LEAST:
        text = bytearray(pt.pickled(value, rng.choice([2, 4, 5])))
        in_pickle = rng.randrange(2)
        for _ in range(rng.randrange(1, 4) * in_pickle):
            at = rng.randrange(len(text))
            if rng.randrange(3):
                text[at] = rng.randrange(256)
            else:
                del text[at:at + rng.randrange(1, 6)]
        records[0].data = bytes(text)
        whole = bytearray(pt.write(path, records, rng.randrange(2)).read_bytes())
        for _ in range(rng.randrange(1, 4) * (not in_pickle)):
            # mostly in the directory
            at = rng.randrange(len(whole)) if rng.randrange(3) == 0 else \
                len(whole) - 1 - rng.randrange(min(len(whole), 400))
            whole[at] = rng.choice([0, 1, 0xff, rng.randrange(256)])
        path.write_bytes(whole)
        good_one = loads(cp, path)
        taken, refusals = taken + good_one, refusals + (not good_one)
    print(f"{taken} taken, {refusals} refused")
    assert taken and refusals


class Things:
    """A Builder that takes everything."""

    def tensor(self, storage, dtype, offset, shape, strides, requires_grad):
        assert all(type(extent) is int for extent in shape + strides)
        return object()

    def parameter(self, tensor, requires_grad):
        return object()

    def is_tensor(self, value):
        return type(value) is object

    def dtype(self, name):
        return name

    size = device = dtype


class Refused(Exception):
    pass


def wrong(at, what):
    raise Refused(at, what)


def only_plain(value, seen):
    """No word or storage of the machine's is in what it gives."""
    if id(value) in seen:
        return True
    seen.add(id(value))
    if isinstance(value, dict):
        return all(only_plain(each, seen) for each in value.values())
    if type(value) in (list, tuple, set, frozenset):
        return all(only_plain(each, seen) for each in value)
    return type(value) in (object, int, float, str, bytes, bytearray, bool, complex,
                           type(None))


def test_a_pickle_of_any_bytes_is_a_value_or_refused(cp):
    from cufile.checkpoint._pickle import _STEPS, Machine
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    names = [b"ctorch\nSize\n", b"ctorch\nfloat32\n", SET, ENCODE, TENSOR, STORE,
             b"ccollections\nOrderedDict\n", push(b"latin1"), b"ctorch\ndevice\n"]
    value = {"a": [pt.tensor("FloatStorage", "0", 10, (2, 5))] * 2, "b": [1.5, (2, None)],
             "c": {b"x", "y"}, "d": pt.Call("torch", "Size", (1, 2))}
    good_ones = [pt.pickled(value, protocol) for protocol in (2, 3, 4, 5)]
    end, taken, refusals = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < end or taken + refusals < LEAST:
        if rng.randrange(2):
            text = bytearray(rng.choice(good_ones))
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(text))
                text[at:at + rng.randrange(3)] = bytes(
                    rng.choices(list(_STEPS), k=rng.randrange(3)))
        else:
            text = P + b"".join(
                rng.choice(names) if rng.randrange(4) == 0 else
                bytes([rng.choice(list(_STEPS)), rng.randrange(4)][:rng.randrange(1, 3)])
                for _ in range(rng.randrange(1, 30))) + b"."
        try:
            got = Machine(bytes(text), Things(), wrong).load()
        except Refused:
            refusals += 1
            continue
        assert only_plain(got, set()), text
        taken += 1
    print(f"{taken} taken, {refusals} refused")
    assert taken and refusals
