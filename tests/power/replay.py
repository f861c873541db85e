# SPDX-License-Identifier: Apache-2.0
"""What a power cut leaves of a disk, from the log of its writes and flushes.

    replay.py MARKS ext4|raw...

NAME.before is a disk, NAME.log what the guest (guest.c) did to it; its records
are from MARKS on. A disk may forget all that it was given since its last
flush, or keep any part of that. So the power is cut in each time between two
flushes in which a write was promised to last, twice: with nothing kept of what
was given since, and with some of it. Every promised byte must be there. What
was done without a promise must be missing, for each way to write at least
once: a look that can miss nothing proves nothing.
"""
import collections
import pathlib
import random
import struct
import subprocess
import sys

MAGIC, VERSION = 0x6A736677736872, 1  # of the kernel's dm-log-writes
FLUSH, FUA, DISCARD = 1, 2, 4
BLOCK = 4096
PLACE = 640 << 10  # of each way on the bare disk

Will = collections.namedtuple("Will", "way promise base off end data")


def entries(path):
    """(flags, offset, data) of all that the disk was told."""
    log = memoryview(path.read_bytes())
    magic, version, number, sector = struct.unpack_from("<QQQI", log)
    if (magic, version) != (MAGIC, VERSION):
        sys.exit(f"{path} is no log of writes")
    at = sector
    for _ in range(number):
        where, length, flags, _ = struct.unpack_from("<QQQQ", log, at)
        at += sector
        if flags & (FUA | DISCARD):
            sys.exit("the disk was told what it does not offer")
        yield flags, where * sector, log[at:at + length * sector]
        at += length * sector


def put(image, given):
    for offset, data in given:
        image[offset:offset + len(data)] = data


def files_of(path, ways):
    """{way: bytes} of a file system after a power cut."""
    # as the mount would: what the journal has goes to its place
    subprocess.run(["e2fsck", "-y", "-E", "journal_only", path], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    script = "".join(f"dump /{way} got.{way}\n" for way in ways)
    subprocess.run(["debugfs", "-f", "-", path], input=script, text=True,
                   check=True, capture_output=True)
    got = {}
    for way in ways:
        file = pathlib.Path("got." + way)
        got[way] = file.read_bytes() if file.exists() else b""
        file.unlink(missing_ok=True)
    return got


def missing(promised, begun, got):
    """The first promised byte that is not there, or None. A later write may
    be there in part, promised or not yet."""
    want, sure = bytearray(PLACE), bytearray(PLACE)
    for will in promised:
        want[will.off:will.end] = will.data
        sure[will.off:will.end] = b"\1" * len(will.data)
    got = got.ljust(PLACE, b"\0")
    if all(got[w.off:w.end] == want[w.off:w.end] for w in promised):
        return None
    for i in range(PLACE):
        if sure[i] and got[i] != want[i] and (i >= len(got) or not any(
                w.off <= i < w.end and w.data[i - w.off] == got[i]
                for w in begun)):
            return i
    return None


class Replay:
    """A disk on its way through its log."""

    def __init__(self, name, marks):
        self.name, self.marks = name, marks
        # as the last flush left it
        self.image = bytearray(pathlib.Path(name + ".before").read_bytes())
        self.given = []  # since the last flush: (offset, data)
        self.began, self.did = [], []  # records since then
        self.promised = collections.defaultdict(list)
        self.bases = {}
        self.lost = {}  # ways that promise nothing: how often it was gone
        self.looks = self.nr_promised = 0
        self.bad = []

    def cut(self, kept, ways):
        """{way: bytes} of what is left."""
        image = self.image
        if kept:
            image = bytearray(image)
            put(image, kept)
        if self.name == "raw":
            return {way: bytes(image[self.bases[way]:self.bases[way] + PLACE])
                    for way in ways}
        path = pathlib.Path(self.name + ".cut")
        path.write_bytes(image)
        return files_of(path, ways)

    def look(self, kept, what, ways):
        got = self.cut(kept, ways)
        self.looks += 1
        for way in ways:
            at = missing(self.promised[way],
                         [w for w in self.began if w.way == way], got[way])
            if at is not None:
                self.bad.append(f"{self.name}, {way}: promised, and byte {at}"
                                f" is not there after cut {self.looks} ({what})")
        return got

    def looks_before_flush(self):
        for will in self.did:
            if will.promise == "nothing":
                self.lost.setdefault(will.way, 0)
            else:
                self.promised[will.way].append(will)
                self.nr_promised += 1
        ways = {will.way for will in self.did}
        older = sorted(set(self.promised) - ways)
        ways |= set(random.sample(older, min(2, len(older))))
        got = self.look([], "all of the cache lost", ways)
        for will in self.did:
            if will.promise == "nothing":
                self.lost[will.way] += got[will.way][will.off:will.end] \
                    != will.data
        if self.given:
            self.look([g for g in self.given if random.random() < 0.5],
                      "some of the cache lost", ways)

    def flush(self):
        if self.did:
            self.looks_before_flush()
        self.began = [w for w in self.began if w not in self.did]
        self.did = []
        put(self.image, self.given)
        self.given = []

    def run(self):
        told = list(entries(pathlib.Path(self.name + ".log")))
        records = bytearray(self.marks)
        for _, offset, data in told:
            if offset >= self.marks:
                at = offset - self.marks
                records[at:at + len(data)] = data
        last = None
        for flags, offset, data in told:
            if flags & FLUSH:
                self.flush()
            elif offset < self.marks:
                self.given.append((offset, data))
            elif data[:10] == b"opencufile":
                words = bytes(data[:BLOCK]).split(b"\n")[0].decode().split()
                way, promise = words[2:4]
                base, off, size = map(int, words[4:])
                at = offset - self.marks + BLOCK
                if words[1] == "will":
                    self.bases[way] = base
                    last = Will(way, promise, base, off, off + size,
                                bytes(records[at:at + size]))
                    self.began.append(last)
                else:
                    self.did.append(last)
        self.flush()
        self.look([], "the last", sorted(self.promised))
        return self.report(sum(1 for flags, _, _ in told if flags & FLUSH))

    def report(self, flushes):
        kept = sorted(way for way, times in self.lost.items() if not times)
        for text in self.bad[:10]:
            print(text)
        for way in kept:
            print(f"{self.name}, {way}: was never lost, though nobody promised"
                  " it: these cuts prove nothing")
        print(f"{self.name}: {flushes} flushes, {self.looks} power cuts,"
              f" {self.nr_promised} promised writes, {len(self.bad)} of them"
              f" found missing; {sum(self.lost.values())} writes without a"
              f" promise were lost, {len(self.lost) - len(kept)} of"
              f" {len(self.lost)} ways")
        return len(self.lost) + len(self.promised) - len(kept), \
            len(kept) + len(self.bad) + (not self.lost or not self.promised)


def main():
    marks, names = int(sys.argv[1]), sys.argv[2:]
    passed = failed = 0
    for name in names:
        good, bad = Replay(name, marks).run()
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
