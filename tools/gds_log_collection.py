#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects what a helper needs to see of a problem with GPU file IO.

All goes into one compressed tar archive, which is sent nowhere; the machine is
only read. Whatever is looked at may be missing, refuse or hang: each thing is
given TIMEOUT, and what cannot be had is a line of missing.txt, with the reason.
gds_log_collection.py(1) says what is taken, and what is never taken.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import ctypes
import glob
import io
import itertools
import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import textwrap
import threading
import time

TIMEOUT = 20  # seconds, for each command and each file
LIMIT = 16 << 20  # bytes; of what is longer the end is taken
PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"

FILES = """
    /etc/os-release /etc/cufile.json /var/log/kern.log /proc/version /proc/cmdline
    /proc/cpuinfo /proc/meminfo /proc/modules /proc/self/mountinfo
    /proc/driver/nvidia/version /proc/driver/nvidia/params /proc/driver/nvidia-fs/*
    /sys/devices/system/node/online /sys/devices/system/node/node*/cpulist
    /sys/devices/system/node/node*/distance /sys/devices/system/node/node*/meminfo
""".split()
COMMANDS = [
    "uname -a", "dmesg", "journalctl -k -n 50000 --no-pager", "lsblk", "lsblk -f",
    "lsblk -t", "lspci -tv", "ibdev2netdev", "ibstatus", "nvidia-smi -q",
    "nvidia-smi topo -m", "gdscheck -p", "gdscheck -t", "gdscheck --dump-config"]
MODULES = (
    "nvidia nvidia_uvm nvidia_peermem nvidia_fs nvme nvme_core nvme_rdma nvme_tcp "
    "mlx5_core mlx5_ib ib_core nfs rpcrdma lustre lnet beegfs wekafsio wekafsgw mmfs26")

# Of the environment of a process nothing else is taken: it may hold secrets. Nor
# are the values of those of these that sound like one, as NVIDIA_API_KEY.
VARIABLES = re.compile(r"(CUFILE|OCF|CUDA|NVIDIA)_|(LD_LIBRARY_PATH|LD_PRELOAD)$")
SECRET = re.compile("KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH", re.I)
LIBRARIES = re.compile(r"/lib(cufile|cuda|uring)[^/]*\.so[^/]*$")
LOG = re.compile(r"/[^/]*cufile[^/]*\.log( \(deleted\))?$")
LIBCUFILE = re.compile(r"/libcufile(?!_)[^/]*\.so[^/]*$")  # not libcufile_rdma


# ------------------------------------------------------- being interrupted

def stop(number, _):
    on_stop(signal.SIG_IGN)  # once: what is cleaned up then is cleaned up
    sys.exit(128 + number)


def on_stop(handler):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


@contextlib.contextmanager
def stops_later():
    """Or a child that has just been made would be known to nobody."""
    late = []
    on_stop(lambda number, _: late.append(number))
    try:
        yield
    finally:
        on_stop(stop)
    if late:
        stop(late[0], None)


# ------------------------------------------------- what may refuse, or hang

def reason(error):
    return getattr(error, "strerror", None) or str(error)


def in_time(work, *arguments):
    """
    What work answers. A thread that a file system, or the memory of another
    process, keeps waiting in the kernel is left behind and ends with this one.
    """
    answer = concurrent.futures.Future()

    def call():
        try:
            answer.set_result(work(*arguments))
        except Exception as error:  # pylint: disable=broad-except
            answer.set_exception(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    if not answer.done():
        raise OSError(f"no answer in {TIMEOUT} s")
    return answer.result()


def take_rights(uid, gid):
    """
    From here on this thread may open what the user may, and no more: a process
    names its files itself, and root would take anybody's along.
    """
    libc = ctypes.CDLL(None)
    libc.setfsgid(gid)
    libc.setfsuid(uid)
    if libc.setfsuid(-1) & 0xffffffff != uid:
        raise OSError(f"cannot be opened with the rights of user {uid}")


def open_regular(path):
    """A FIFO or a device is not opened at all: that alone may do something."""
    at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(at).st_mode):
            raise OSError("not a regular file")
        return open(f"/proc/self/fd/{at}", "rb")
    finally:
        os.close(at)


def read_end(path, user=None):
    """The last bytes of a file, LIMIT at most, and how many are before them."""
    if user:
        take_rights(*user)
    with open_regular(path) as file:
        before = max(0, os.fstat(file.fileno()).st_size - LIMIT)
        file.seek(before)
        return file.read(LIMIT), before


def find_program(name):
    """Of our tools the one beside this script, or of the build; or of the PATH."""
    here = os.path.dirname(os.path.realpath(__file__))
    build = f"{here}/../build/tools"
    return shutil.which(name, path=f"{here}:{build}:{build}/{name}:{PATH}")


def kill(child):
    """And all that it has started. One that hangs in the kernel stays."""
    os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(1)


def run(command):
    """-> what it printed, what it complained of, and why that is not all, or None"""
    name, *arguments = command.split()
    program = find_program(name)
    if not program:
        return b"", b"", "not installed"
    env = {name: value for name, value in os.environ.items()
           if not SECRET.search(name)}  # gdscheck prints variables
    env["CUFILE_LOGFILE_PATH"] = "/dev/null"  # it logs if it is configured so
    env.update(PATH=PATH, LC_ALL="C")
    child = None
    try:
        with stops_later():
            child = subprocess.Popen(
                [program, *arguments], env=env, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
        said, complaint = child.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired as late:
        return late.output or b"", late.stderr or b"", f"no end in {TIMEOUT} s, killed"
    except OSError as error:
        return b"", b"", reason(error)
    finally:
        if child and child.poll() is None:
            kill(child)
    why = textwrap.shorten(complaint.decode(errors="replace"), 300)
    if child.returncode and not why:
        why = f"exit status {child.returncode}"
    return said, complaint, why


# ----------------------------------------------------------- the archive

def printable(text):
    """One line for a terminal, whatever others have called their files."""
    return "".join(c if c.isprintable() else "?" for c in text)


class Archive:
    """The members, and the account of what is not among them."""

    def __init__(self, tar, top):
        self.tar, self.top, self.names = tar, top, set()
        self.missing, self.summary, self.findings = [], [], []

    def add(self, name, data):
        """Under a name with a number, where the name is taken."""
        number, stem = 1, name
        while name in self.names:
            number += 1
            name = f"{stem}.{number}"
        self.names.add(name)
        member = tarfile.TarInfo(f"{self.top}/{name}")
        member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
        self.tar.addfile(member, io.BytesIO(data))

    def add_lines(self, name, lines):
        self.add(name, "".join(line + "\n" for line in lines).encode(
            "utf-8", "surrogateescape"))

    def lack(self, what, why):
        self.missing.append(printable(f"{what}: {why}"))

    def tell(self, label, text):
        self.summary.append(printable(f"{label:13} {text}"))

    def attempt(self, what, work, *arguments):
        """What work answers; or None, and a line of missing.txt."""
        try:
            return in_time(work, *arguments)
        except (OSError, ValueError) as error:  # the latter: a path with a NUL
            self.lack(what, reason(error))
            return None

    def take_file(self, name, path, what=None, user=None):
        """-> what was taken of it, or None"""
        data, before = self.attempt(what or path, read_end, path, user) or (None, 0)
        if before:
            self.lack(what or path, f"only its end was taken, without the first "
                      f"{before} bytes")
        if data is not None:
            self.add(name, data)
        return data

    def take_command(self, name, command):
        said, complaint, why = run(command)
        if len(said) > LIMIT:
            why = f"only its end was taken, without the first {len(said) - LIMIT} bytes"
        if why:
            self.lack(command, why)
        for suffix, text in (("", said), (".stderr", complaint)):
            if text:
                self.add(name + suffix, text[-LIMIT:])


# ----------------------------------------------------------- the machine

def first_line(path, otherwise):
    # bytes that are no text: a long name of a process ends within a letter
    with contextlib.suppress(OSError), open(path, encoding="utf-8",
                                            errors="surrogateescape") as file:
        return file.readline().strip()
    return otherwise


def take_machine(archive):
    machine = os.uname()
    archive.tell("host", machine.nodename)
    archive.tell("kernel", f"{machine.sysname} {machine.release} {machine.machine}")
    archive.tell("driver", first_line("/proc/driver/nvidia/version", "none"))
    archive.tell("nvidia-fs", first_line("/proc/driver/nvidia-fs/version", "none"))
    for pattern in FILES:
        for path in sorted(glob.glob(pattern)) or [pattern]:
            archive.take_file("machine" + path, path)
    for command in COMMANDS:
        archive.take_command(f"commands/{command.replace(' ', '_')}.txt", command)
    archive.take_command("commands/modinfo.txt", "modinfo " + MODULES)


# ---------------------------------------------------------- the processes

def threads_of(pid):
    return sorted(os.listdir(f"/proc/{pid}/task"), key=int)


def places(pid):
    yield f"/proc/{pid}"
    for tid in threads_of(pid):
        yield f"/proc/{pid}/task/{tid}"


def place(pid):
    """
    Where /proc shows what a process has: a main thread that has ended while
    others go on has nothing.
    """
    for at in places(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"{at}/maps", "rb") as maps:
                if maps.read(1):
                    return at
    return f"/proc/{pid}"


def mapped(pid):
    """Its place, and lines of its maps, where a libcufile is among them."""
    at = place(pid)
    with open(f"{at}/maps", encoding="utf-8", errors="surrogateescape") as maps:
        lines = [line.rstrip("\n") for line in maps if LIBRARIES.search(line)]
    return at, lines if any(map(LIBCUFILE.search, lines)) else []


def find_processes(archive):
    """{pid: mapped's answer}; those that may not be looked at are noted together."""
    found, refused = {}, collections.defaultdict(list)
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            found[pid] = in_time(mapped, pid)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
        except OSError as error:
            refused[reason(error)].append(str(pid))
    for why, pids in refused.items():
        archive.lack("processes that may have a libcufile, too: " + " ".join(pids), why)
    return {pid: shown for pid, shown in found.items() if shown[1]}


def environment(at):
    kept = {}
    with open(f"{at}/environ", "rb") as file:
        entries = os.fsdecode(file.read()).split("\0")
    for name, equals, value in (entry.partition("=") for entry in entries):
        if equals and VARIABLES.match(name):
            kept.setdefault(name, "(left out)" if SECRET.search(name) else value)
    return kept


def threads(pid):
    """What each thread waits for in the kernel; the stack only root may see."""
    lines = []
    for tid in threads_of(pid):
        lines.append(f"thread {tid}")
        for name in ("comm", "wchan", "stack"):
            try:
                data, _ = read_end(f"/proc/{pid}/task/{tid}/{name}")
                lines += [f"  {name} {os.fsdecode(line)}" for line in data.splitlines()]
            except OSError as error:
                lines.append(f"  {name} ({reason(error)})")
    return lines


def open_logs(at, known):
    """Other logs that it has open, wherever it was told to put them."""
    found = {}
    for link in glob.glob(f"{at}/fd/*"):
        with contextlib.suppress(OSError):  # it opens and closes meanwhile
            path = os.readlink(link)
            if LOG.search(path) and not (os.path.exists(known)
                                         and os.path.samefile(link, known)):
                found[path] = link
    return found


def logging_dir(text):
    """logging.dir of a cufile.json, which may have comments, and a comma too many."""
    for junk in (r"//[^\n]*|/\*.*?(?:\*/|\Z)", r",(?=\s*[}\]])"):
        text = re.sub(r'("(?:\\.|[^"\\])*(?:"|\\?\Z))|' + junk,
                      lambda match: match[1] or "", text, flags=re.S)
    try:
        value = json.loads(text)["logging"]["dir"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return value if isinstance(value, str) else ""


def take_named(archive, pid, at, user, label, path):
    """
    A file by the name that the process has for it, in its container, too. ->
    where it is for us, and what was taken
    """
    seen = f"{at}/" + (f"root{path}" if path.startswith("/") else f"cwd/{path}")
    here = archive.attempt(f"process {pid}: its directory", os.readlink,
                           f"{at}/cwd") or ""
    shown, data = os.path.join(here, path), None
    what = f"process {pid}: {shown}"
    if shown.startswith(("/dev/", "/proc/")):
        archive.lack(what, "not a file of its own")  # our /dev/stderr is another
    else:
        data = archive.take_file(f"processes/{pid}/cufile.{label}", seen, what, user)
    archive.tell(f"  cufile.{label}", shown + (" (not taken)" if data is None else ""))
    return seen, data or b""


def take_places(archive, pid, at, user, variables):
    """Its configuration, and the logs that this or the environment names."""
    path = variables.get("CUFILE_ENV_PATH_JSON") or "/etc/cufile.json"
    _, config = take_named(archive, pid, at, user, "json", path)
    path = variables.get("CUFILE_LOGFILE_PATH") or os.path.join(
        logging_dir(os.fsdecode(config)), "cufile.log")
    known, _ = take_named(archive, pid, at, user, "log", path)
    others = archive.attempt(f"process {pid}: its open files", open_logs, at, known)
    for path, link in (others or {}).items():
        archive.take_file(f"processes/{pid}/cufile.log", link,
                          f"process {pid}: {path}", user)
        archive.tell("  open log", path)


def tell_libraries(archive, pid, maps):
    paths = {line.split(None, 5)[5] for line in maps if LIBCUFILE.search(line)}
    for path in sorted(paths):
        archive.tell("  library", path)
    if len(paths) > 1:
        archive.findings.append(f"process {pid} has {len(paths)} libcufiles, which do "
                                "not know each other's files and buffers")
        archive.tell("  FINDING", archive.findings[-1])


def take_process(archive, pid, at, maps):
    folder = f"processes/{pid}"
    status = archive.take_file(f"{folder}/status", f"/proc/{pid}/status")
    if not status:
        return
    ids = [re.search(rb"^%s:\s+(\d+)" % key, status, re.M) for key in (b"Uid", b"Gid")]
    if not all(ids):  # by whose rights its files may be opened is not known
        archive.lack(f"process {pid}", f"/proc/{pid}/status has no Uid and Gid")
        return
    user = [int(found[1]) for found in ids]
    archive.tell("process", f"{pid} of user {user[0]}: "
                 + first_line(f"/proc/{pid}/comm", "ended"))
    tell_libraries(archive, pid, maps)
    archive.add_lines(f"{folder}/maps", maps)
    archive.take_file(f"{folder}/cmdline", f"{at}/cmdline")
    for name in ("limits", "wchan", "stack"):
        archive.take_file(f"{folder}/{name}", f"/proc/{pid}/{name}")
    variables = archive.attempt(f"process {pid}: its environment", environment, at)
    if variables is not None:
        archive.add_lines(f"{folder}/environ",
                          [f"{name}={value}" for name, value in variables.items()])
        take_places(archive, pid, at, user, variables)
    archive.add_lines(f"{folder}/threads", archive.attempt(
        f"process {pid}: its threads", threads, pid) or [])
    archive.take_command(f"{folder}/gds_stats.json", f"gds_stats -l 3 -p {pid} --json")


# ------------------------------------------------------------- all of it

def fill(archive, more):
    take_machine(archive)
    processes = find_processes(archive)
    archive.tell("processes", f"{len(processes)} with a libcufile")
    for pid, (at, maps) in processes.items():
        take_process(archive, pid, at, maps)
    for path in more:
        archive.take_file("more/" + os.path.basename(path), path)
    archive.add_lines("missing.txt", archive.missing)
    archive.add_lines("summary.txt", archive.summary)


def publish(temporary, folder, top):
    """Gives it a name that nobody has: an empty file keeps that until the rename."""
    for suffix in itertools.chain([""], (f"_{n}" for n in itertools.count(2))):
        path = os.path.join(folder, f"{top}{suffix}.tar.gz")
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            continue
        try:
            os.rename(temporary, path)
        except OSError:
            os.unlink(path)
            raise
        return path


def private(path, flags):
    return os.open(path, flags, 0o600)


def collect(folder, more):
    """-> the path of the archive, and what is to be told of it"""
    host = re.sub(r"[^\w.-]", "_", os.uname().nodename)
    top = f"gds_log_{time.strftime('%Y%m%d_%H%M%S')}_{host}"
    temporary = os.path.join(folder, f".{top}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb", opener=private) as file:
            # a stream: a GzipFile would complain of a full disk once more
            with tarfile.open(f"{top}.tar", "w|gz", file) as tar:
                archive = Archive(tar, top)
                fill(archive, more)
            file.flush()
            os.fsync(file.fileno())  # some disks are full only now
        on_stop(signal.SIG_IGN)  # it is whole
        return publish(temporary, folder, top), archive
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="gds_log_collection.py", allow_abbrev=False,
        description="Collects into one archive what a helper needs to see of a "
        "problem with GPU file IO, and sends it nowhere. Root sees more.")
    parser.add_argument("-d", metavar="DIR", default=".",
                        help="where the archive goes (default: the current directory)")
    parser.add_argument("-f", metavar="FILE1,FILE2,...", action="append", default=[],
                        help="more files to take along, without blanks between them")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    on_stop(stop)
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            os.setgroups([])  # or take_rights would leave these
    more = [path for paths in options.f for path in paths.split(",") if path]
    try:
        path, archive = collect(options.d, more)
    except OSError as error:
        sys.exit(f"gds_log_collection.py: no archive in {options.d}: {reason(error)}")
    if sys.stdout:
        sys.stdout.reconfigure(errors="surrogateescape")
    for line in archive.findings:
        print(line)
    print(f"{len(archive.names)} files taken; {len(archive.missing)} things could not "
          "be had, missing.txt in the archive says why")
    print(path)


if __name__ == "__main__":
    main()
