# SPDX-License-Identifier: Apache-2.0
"""gds_log_collection.py: what its archive has, and what it must never have.

The script is copied beside the tools of the build, as an installation has it.
Where a test needs another table, limit or clock it sets the module's.
"""
import contextlib
import gzip
import os
import pathlib
import re
import resource
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/gds_log_collection.py"
PAGE = (ROOT / "man/man1/gds_log_collection.py.1").read_text()
TOOLS = ("OCF_GDSCHECK", "OCF_GDS_STATS")
LOAD = os.environ["OCF_LOAD"]
MIB = 1 << 20
NOBODY = 65534
FEW = "g.COMMANDS = ['uname -a']"  # what most tests need of the machine
IMPORT = """
import sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import gds_log_collection as g
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="as root alone")


def environment(**more):
    """Nothing of the caller's configuration, nor of a sanitizer's leaks."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CUFILE_", "OCF_", "FAKECUDA_"))}
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    env.update(more)
    return env


class Archive:
    """{name below the one folder: bytes}"""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        with tarfile.open(self.path) as tar:
            self.members = {member.name: tar.extractfile(member).read()
                            for member in tar.getmembers() if member.isreg()}
            assert len(self.members) == len(tar.getmembers())
        folder, = {name.partition("/")[0] for name in self.members}
        assert folder == self.path.name[:len(folder)]
        self.members = {name.partition("/")[2]: data
                        for name, data in self.members.items()}
        self.missing = self.text("missing.txt").splitlines()

    def __contains__(self, name):
        return name in self.members

    def text(self, name):
        return self.members[name].decode("utf-8", "surrogateescape")

    def lacks(self, what):
        """The reason in missing.txt, or None."""
        return next((line[len(what) + 2:] for line in self.missing
                     if line.startswith(what + ": ")), None)

    def told(self, label, pid=None):
        """What summary.txt has under a label, of the machine or of a process."""
        parts = re.split(r"^process  +", self.text("summary.txt"), flags=re.M)
        part = parts[0] if pid is None else next(
            part for part in parts if part.startswith(f"{pid} "))
        return re.findall(rf"^ *{label}  *(.*)$", part, re.M)

    def anywhere(self, text):
        return [name for name, data in self.members.items()
                if text.encode() in data or text in name]


class Collector:
    """The installed script, an empty directory to be in, another for the archive."""

    def __init__(self, folder):
        self.bin, self.cwd, self.out, self.fakes = (
            folder / name for name in ("bin", "cwd", "out", "fakes"))
        for path in (self.bin, self.cwd, self.out, self.fakes):
            path.mkdir()
        shutil.copy(SCRIPT, self.bin)
        for variable in TOOLS:
            tool = pathlib.Path(os.environ[variable]).resolve()
            (self.bin / tool.name).symlink_to(tool)

    def fake(self, name, script):
        path = self.fakes / name
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)

    def start(self, *args, patch=FEW, out=None, env=None, **more):
        """patch: lines to run before; None: the script as it is."""
        command = ([self.bin / SCRIPT.name] if patch is None else
                   ["-c", f"{IMPORT}{patch}\ng.main(sys.argv[2:])", self.bin])
        env = environment(**(env or {}))
        env["PATH"] = f"{self.fakes}:{env['PATH']}"
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE, **more}
        return subprocess.Popen(
            [sys.executable, *command, "-d", out or self.out, *args], env=env,
            cwd=self.cwd, text=True, errors="surrogateescape", **more)

    def run(self, *args, status=0, **more):
        """-> (stdout, stderr)"""
        with self.start(*args, **more) as process:
            said = process.communicate(timeout=120)
        assert process.returncode == status, said
        return said

    def archive(self, *args, **more):
        said, complaint = self.run(*args, **more)
        assert complaint == ""
        return Archive(said.splitlines()[-1])

    def left(self):
        return sorted(path.name for path in self.out.iterdir())


@pytest.fixture
def collector(tmp_path):
    (tmp_path / "collector").mkdir()
    return Collector(tmp_path / "collector")


@contextlib.contextmanager
def running(command, **more):
    """A program that says "ready" and goes on until its input ends."""
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, **more) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def load(folder, prefix=(), more=None, **env):
    """A process with libcufile, in that folder, which it does IO in."""
    return running([*prefix, LOAD, "."], cwd=folder, env=environment(**env),
                   **(more or {}))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    return path


# ------------------------------------------------------------ the archive

def test_the_archive_has_the_machine_and_what_is_missing_of_it(collector):
    said, complaint = collector.run(patch=None)
    *_, count, path = said.splitlines()
    archive = Archive(path)
    assert complaint == ""
    assert collector.left() == [archive.path.name]
    assert re.fullmatch(r"gds_log_\d{8}_\d{6}_[\w.-]+\.tar\.gz", archive.path.name)
    assert archive.text("machine/proc/cpuinfo") and archive.text("machine/proc/meminfo")
    assert archive.text("machine/proc/self/mountinfo")
    assert archive.text("commands/uname_-a.txt").startswith("Linux ")
    assert "properties.allow_compat_mode" in archive.text(
        "commands/gdscheck_--dump-config.txt")
    assert archive.text("commands/gdscheck_-p.txt")
    assert archive.told("kernel") == ["{0.sysname} {0.release} {0.machine}".format(
        os.uname())]
    assert count == (f"{len(archive.members)} files taken; {len(archive.missing)} "
                     "things could not be had, missing.txt in the archive says why")


def test_the_owner_alone_may_read_it_and_its_members(collector):
    archive = collector.archive(preexec_fn=lambda: os.umask(0))
    assert stat.S_IMODE(archive.path.stat().st_mode) == 0o600
    with tarfile.open(archive.path) as tar:
        assert {member.mode for member in tar} == {0o600}


def test_what_is_not_there_is_noted_with_the_reason(collector):
    collector.fake("broken", "echo half; echo it broke >&2; exit 3")
    collector.fake("silent", "exit 4")
    collector.fake("warns", "echo whole; echo careful >&2")
    collector.fake("other", "")
    (collector.fakes / "other").chmod(0o644)
    (collector.fakes / "ours").write_text("#!/no/such/shell\n")
    (collector.fakes / "ours").chmod(0o755)
    archive = collector.archive(patch="""
g.COMMANDS = ['no_such_tool -x', 'broken', 'silent', 'warns', 'other', 'ours']
g.FILES = ['/proc/no_such_file', '/proc/no_such/*']""")
    assert archive.lacks("no_such_tool -x") == "not installed"
    assert archive.lacks("broken") == "it broke"
    assert archive.text("commands/broken.txt") == "half\n"
    assert archive.lacks("silent") == "exit status 4"
    assert archive.lacks("warns") == "careful"
    assert archive.text("commands/warns.txt.stderr") == "careful\n"
    assert archive.lacks("other") == "not installed"
    assert archive.lacks("ours") == "No such file or directory"
    assert archive.lacks("/proc/no_such_file") == "No such file or directory"
    assert archive.lacks("/proc/no_such/*") == "No such file or directory"


def test_a_tool_beside_the_script_is_preferred_to_one_of_the_path(collector):
    collector.fake("gdscheck", "echo another")
    collector.fake("lsblk", "echo that of the path")
    archive = collector.archive(patch="g.COMMANDS = ['gdscheck -v', 'lsblk']")
    assert "another" not in archive.text("commands/gdscheck_-v.txt")
    assert archive.text("commands/lsblk.txt") == "that of the path\n"
    (collector.bin / "gdscheck").unlink()
    archive = collector.archive(patch="g.COMMANDS = ['gdscheck -v']")
    assert archive.text("commands/gdscheck_-v.txt") == "another\n"


def test_nothing_is_written_but_the_archive(collector):
    """Not even the log that the configuration asks gdscheck for."""
    collector.archive(patch=None, env={"CUFILE_LOGGING_LEVEL": "TRACE",
                                       "CUFILE_MISSPELT": "1"})
    assert list(collector.cwd.iterdir()) == []
    assert sorted(path.name for path in collector.bin.iterdir()) == sorted(
        [SCRIPT.name, *(pathlib.Path(os.environ[tool]).name for tool in TOOLS)])


# ---------------------------------------------------------- the processes

def test_of_a_process_no_other_variables_are_in_any_member(collector, folder):
    word = {name: f"{name.lower()}-{secrets.token_hex(8)}" for name in
            ("PASSWORD", "NVIDIA_API_KEY", "CUFILE_RDMA_DC_KEY", "MY_CUFILE_X",
             "LD_PRELOAD_NOT", "CUDA_CACHE_PATH", "CUFILE_OF_NOBODY", "OCF_MINE")}
    with load(folder, **word) as process:
        archive = collector.archive(patch=None, env=word)
    kept = archive.text(f"processes/{process.pid}/environ").splitlines()
    for name in ("CUDA_CACHE_PATH", "CUFILE_OF_NOBODY", "OCF_MINE"):
        assert f"{name}={word[name]}" in kept
    for name in ("NVIDIA_API_KEY", "CUFILE_RDMA_DC_KEY"):
        assert f"{name}=(left out)" in kept
        assert archive.anywhere(word[name]) == []
    for name in ("PASSWORD", "MY_CUFILE_X", "LD_PRELOAD_NOT"):
        assert archive.anywhere(word[name]) == []
        assert not any(name in line for line in kept)


def test_a_process_is_shown_from_all_sides(collector, folder):
    with load(folder, OCF_STATS="3") as process:
        archive = collector.archive()
    at = f"processes/{process.pid}"
    assert archive.text(f"{at}/cmdline") == f"{LOAD}\0.\0"
    assert "Max open files" in archive.text(f"{at}/limits")
    assert f"Pid:\t{process.pid}" in archive.text(f"{at}/status")
    assert f'"pid":{process.pid},"level":3' in archive.text(f"{at}/gds_stats.json")
    threads = archive.text(f"{at}/threads").splitlines()
    assert threads[:2] == [f"thread {process.pid}",
                           f"  comm {pathlib.Path(LOAD).name[:15]}"]
    assert any(line.startswith("  wchan") for line in threads)
    assert f"{at}/stack" in archive or archive.lacks(f"/proc/{process.pid}/stack")
    maps = archive.text(f"{at}/maps").splitlines()
    assert any("/libcufile.so" in line for line in maps)
    assert all(re.search(r"/lib(cufile|cuda|uring)", line) for line in maps)
    library, = {line.split(None, 5)[5] for line in maps if "/libcufile" in line}
    assert library in archive.told("library", process.pid)


def test_a_process_whose_main_thread_has_ended_is_shown_too(collector, folder):
    with load(folder, OCF_STATS="3", CUFILE_LOGGING_LEVEL="INFO") as process:
        process.stdin.write("alone\n")
        process.stdin.flush()
        while "Z (zombie)" not in pathlib.Path(f"/proc/{process.pid}/status").read_text():
            time.sleep(0.001)
        archive = collector.archive()
    at = f"processes/{process.pid}"
    assert "/libcufile.so" in archive.text(f"{at}/maps")
    assert archive.text(f"{at}/cmdline") == f"{LOAD}\0.\0"
    assert "OCF_STATS=3" in archive.text(f"{at}/environ")
    assert archive.text(f"{at}/cufile.log") == (folder / "cufile.log").read_text()
    assert f'"pid":{process.pid},"level":3' in archive.text(f"{at}/gds_stats.json")


def test_a_process_whose_name_is_cut_within_a_letter_is_shown_too(collector, folder):
    program = folder / "процессоры"  # of which the kernel keeps 15 bytes
    program.symlink_to(LOAD)
    with running([program, "."], cwd=folder, env=environment()) as process:
        archive = collector.archive()
    assert re.search(rf"^process +{process.pid} of user \d+: процесс\?$",
                     archive.text("summary.txt"), re.M)


def test_a_process_whose_user_is_not_told_is_noted(collector, folder):
    """Emulated kernels have a /proc of their own."""
    with load(folder) as process:
        archive = collector.archive(patch=FEW + """
real = g.read_end
def read_end(path, user=None):
    data, before = real(path, user)
    return data.replace(b"Uid:", b"Sid:") if path.endswith("/status") else data, before
g.read_end = read_end""")
    status = f"/proc/{process.pid}/status"
    assert archive.lacks(f"process {process.pid}") == f"{status} has no Uid and Gid"
    assert not archive.anywhere(f"processes/{process.pid}/environ")


def test_a_process_that_counts_nothing_says_so(collector, folder):
    with load(folder) as process:
        archive = collector.archive()
    assert "keeps no statistics" in archive.lacks(
        f"gds_stats -l 3 -p {process.pid} --json")


LOGS = {
    "a path": ({"CUFILE_LOGFILE_PATH": "{}/sub/named"}, None, "sub/named"),
    "a path from its directory": ({"CUFILE_LOGFILE_PATH": "named"}, None, "named"),
    "its directory": ({"CUFILE_LOGGING_LEVEL": "INFO"}, None, "cufile.log"),
    "a directory": ({"CUFILE_ENV_PATH_JSON": "{}/c.json"}, """{
        // "logging": { "dir": "no" },
        "execution": { "max_io_threads": 4, },
        /* and "logging" */ "logging": { "dir": "%s/sub", "level": "INFO", }, }""",
                    "sub/cufile.log"),
    "a directory from its own": ({"CUFILE_ENV_PATH_JSON": "c.json"},
                                 '{"logging": {"dir": "sub//", "level": "INFO"}}',
                                 "sub/cufile.log"),
    "a path before a directory": (
        {"CUFILE_ENV_PATH_JSON": "c.json", "CUFILE_LOGFILE_PATH": "named"},
        '{"logging": {"dir": "sub"}}', "named"),
    "a configuration that is none": (
        {"CUFILE_ENV_PATH_JSON": "c.json", "CUFILE_LOGGING_LEVEL": "INFO"},
        '{"logging": {"dir": "sub"}', "cufile.log"),
}


@pytest.mark.parametrize("by", LOGS)
def test_configuration_and_log_are_found_where_the_library_has_them(
        by, collector, folder):
    """The log's place by the library itself, which writes it."""
    env, config, log = LOGS[by]
    (folder / "sub").mkdir()
    env = {name: value.format(folder) for name, value in env.items()}
    env.setdefault("CUFILE_LOGGING_LEVEL", "INFO")
    if config:
        config = config.replace("%s", str(folder))
        (folder / "c.json").write_text(config)
    with load(folder, **env) as process:
        archive = collector.archive()
    at = f"processes/{process.pid}/cufile"
    assert "driver open" in (folder / log).read_text()
    assert archive.text(f"{at}.log") == (folder / log).read_text()
    assert f"{at}.log.2" not in archive
    path, = archive.told("cufile.log", process.pid)
    assert os.path.normpath(path) == str(folder / log)
    if config:
        assert archive.text(f"{at}.json") == config
    else:
        path, = archive.told("cufile.json", process.pid)
        assert path.startswith("/etc/cufile.json")


def test_the_ways_to_write_logging_dir(collector):
    """And that the time for a strange file is not the square of its size."""
    code = f"{IMPORT}print([g.logging_dir(text) for text in eval(sys.stdin.read())])"
    cases = {'{"logging":{"dir":"a // b"}}': "a // b",
             '{"logging":{"dir":"a,}"},}': "a,}",
             '{"logging":{"dir":"\\"/*"}}': '"/*',
             '{"logging":{"dir":7}}': "", '{"logging":"dir"}': "",
             "[]": "", "": "", "[" * 100000: "",
             '"' + '\\"' * 100000: "", "/* " * 100000: "", "," * 100000: ""}
    done = subprocess.run(
        [sys.executable, "-c", code, collector.bin], input=repr(list(cases)),
        check=True, text=True, capture_output=True, timeout=60)
    assert done.stdout == f"{list(cases.values())}\n"


def test_a_path_that_cannot_be_one_is_noted(collector, folder):
    (folder / "c.json").write_text('{"logging": {"dir": "a\\u0000b"}}')
    with load(folder, CUFILE_ENV_PATH_JSON="c.json") as process:
        archive = collector.archive()
    assert "null" in archive.lacks(
        f"process {process.pid}: {folder}/a?b/cufile.log")


@pytest.mark.parametrize("deleted", [False, True])
def test_a_log_that_is_open_elsewhere_is_taken_too(deleted, collector, folder):
    with open(folder / "a_cufile_7.log", "w+", encoding="utf-8") as log:
        log.write("of another place\n")
        log.flush()
        if deleted:
            os.unlink(log.name)
        with load(folder, more={"pass_fds": [log.fileno()]},
                  CUFILE_LOGFILE_PATH="cufile.log",
                  CUFILE_LOGGING_LEVEL="INFO") as process:
            archive = collector.archive()
    assert "driver open" in archive.text(f"processes/{process.pid}/cufile.log")
    assert archive.text(f"processes/{process.pid}/cufile.log.2") == "of another place\n"
    assert archive.told("open log", process.pid) == [
        log.name + " (deleted)" * deleted]


def test_a_log_on_a_stream_is_not_mistaken_for_the_stream_of_the_collector(
        collector, folder):
    with open(folder / "stderr", "w+", encoding="utf-8") as file, \
            load(folder, CUFILE_LOGFILE_PATH="/dev/stderr",
                 more={"stderr": subprocess.DEVNULL}) as process:
        word = secrets.token_hex(8)  # such tests may run beside this one
        file.write(word)
        file.flush()
        said, _ = collector.run(stderr=file)
    archive = Archive(said.splitlines()[-1])
    assert archive.anywhere(word) == []
    assert archive.lacks(f"process {process.pid}: /dev/stderr") == \
        "not a file of its own"


TWO = """
import mmap, sys
maps = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        maps.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("names,libraries", [
    (["a/libcufile.so.0", "b/libcufile.so.1.15.1"], 2),
    (["a/libcufile.so.0", "b/libcufile_rdma.so.1"], 1),
    (["a/libcufile-1a2b3c.so.0", "b/libcuda.so.1"], 1),
    (["a/libcuda.so.1", "b/libcufile_rdma.so.1"], 0),
])
def test_more_than_one_library_in_a_process_is_a_finding(
        names, libraries, collector, folder):
    for name in names:
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(bytes(4096))
    with running([sys.executable, "-c", TWO, *names], cwd=folder) as process:
        said, _ = collector.run()
    archive = Archive(said.splitlines()[-1])
    finding = f"process {process.pid} has 2 libcufiles"
    assert any(line.startswith(finding) for line in said.splitlines()) == \
        (libraries == 2)
    assert any(name.startswith(f"processes/{process.pid}/")
               for name in archive.members) == (libraries > 0)
    if libraries:
        assert archive.told("library", process.pid) == [
            str(folder / name) for name in names[:libraries]]


def test_a_process_that_has_ended_meanwhile_is_nothing_to_note(collector):
    archive = collector.archive(patch=FEW + """
def mapped(pid):
    raise ProcessLookupError(3, "of a process") if pid % 2 else FileNotFoundError(2, "")
g.mapped = mapped""")
    assert archive.told("processes") == ["0 with a libcufile"]
    assert "of a process" not in archive.text("missing.txt")
    assert not any(line.startswith("processes") for line in archive.missing)


@as_root
def test_processes_of_other_users_are_noted_where_they_cannot_be_seen(folder):
    with tempfile.TemporaryDirectory() as place, load(folder) as process:
        os.chmod(place, 0o755)
        collector = Collector(pathlib.Path(place))
        os.chown(collector.out, NOBODY, NOBODY)
        archive = collector.archive(
            preexec_fn=lambda: (os.setgroups([]), os.setgid(NOBODY), os.setuid(NOBODY)))
        assert not archive.anywhere(LOAD)
    line, = (line for line in archive.missing if line.startswith(
        "processes that may have a libcufile, too: ")
        and line.endswith(": Permission denied"))
    assert f" {process.pid}" in line


@as_root
@pytest.mark.parametrize("who", ["of root", "of its group", "of the user"])
def test_root_takes_no_file_that_the_user_of_the_process_may_not_read(
        who, collector, folder):
    """The process names its log itself: it could name any."""
    file = folder / "log"
    word = secrets.token_hex(8)
    file.write_text(word)
    file.chmod({"of root": 0o600, "of its group": 0o640, "of the user": 0o600}[who])
    if who == "of the user":
        os.chown(file, NOBODY, NOBODY)
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        shown = pathlib.Path(place, "log")
        with load(folder, CUFILE_LOGFILE_PATH=str(shown)) as process:
            shutil.copy2(file, shown)
            os.chown(shown, file.stat().st_uid, file.stat().st_gid)
            process.stdin.write(f"uid {NOBODY}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "ok\n"
            archive = collector.archive(preexec_fn=lambda: os.setgroups([0]))
    if who == "of the user":
        assert archive.text(f"processes/{process.pid}/cufile.log") == word
        return
    assert archive.anywhere(word) == []
    assert archive.lacks(f"process {process.pid}: {shown}") == "Permission denied"


def test_a_container_has_files_of_its_own(collector, folder):
    at = folder / "at"
    at.mkdir()
    script = ("mount -t tmpfs none at && echo '{\"logging\":{\"level\":\"INFO\"}}'"
              ' >at/own.json && exec "$@"')
    if subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none at"],
                      cwd=folder, check=False, capture_output=True).returncode:
        pytest.skip("no mount namespace of one's own")
    with load(folder, prefix=["unshare", "-m", "sh", "-c", script, "sh"],
              CUFILE_ENV_PATH_JSON=str(at / "own.json"),
              CUFILE_LOGFILE_PATH=str(at / "own.log")) as process:
        archive = collector.archive()
    assert list(at.iterdir()) == []
    assert '"logging"' in archive.text(f"processes/{process.pid}/cufile.json")
    assert "driver open" in archive.text(f"processes/{process.pid}/cufile.log")


# ------------------------------------------------ what hangs, and what is long

def gone(pid):
    """Waits for it; a zombie has ended, too."""
    for _ in range(600):
        try:
            if b"\nState:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_bytes():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


def test_a_command_that_hangs_is_killed_with_its_children(collector):
    """The child would keep the pipe open, and so the collector waiting."""
    collector.fake("lspci", "trap '' TERM; echo half\n"
                   f"sleep 1000 & echo $! >{collector.cwd}/pid; wait")
    archive = collector.archive(patch="g.TIMEOUT = 1; g.COMMANDS = ['lspci -tv']")
    assert archive.lacks("lspci -tv") == "no end in 1 s, killed"
    # unless this machine did not come so far in a second
    child = collector.cwd / "pid"
    if child.exists() and child.read_text():
        assert archive.text("commands/lspci_-tv.txt") == "half\n"
        assert gone(int(child.read_text()))


def test_a_file_that_hangs_is_left(collector):
    archive = collector.archive(patch="""
g.COMMANDS, g.TIMEOUT, g.FILES = [], 1, ["/proc/cpuinfo"]
really = g.open_regular
g.open_regular = lambda path: (time.sleep(1000) if path == "/proc/cpuinfo"
                               else really(path))""")
    assert archive.lacks("/proc/cpuinfo") == "no answer in 1 s"


def test_a_command_has_no_input_to_wait_for(collector):
    collector.fake("lspci", "cat; echo end")
    with collector.start(patch="g.COMMANDS = ['lspci']",
                         stdin=subprocess.PIPE) as process:
        said = process.stdout.read()
    archive = Archive(said.splitlines()[-1])
    assert archive.text("commands/lspci.txt") == "end\n"


def test_of_a_large_log_the_end_is_taken(collector, folder):
    log = folder / "cufile.log"
    with load(folder) as process:
        with open(log, "wb") as file:
            file.write(b"start")
            file.truncate(16 * MIB)
            file.seek(16 * MIB)
            file.write(b"ended")
        archive = collector.archive()
    taken = archive.members[f"processes/{process.pid}/cufile.log"]
    assert taken == bytes(16 * MIB - 5) + b"ended"
    assert archive.lacks(f"process {process.pid}: {log}") == \
        "only its end was taken, without the first 5 bytes"


def test_of_what_a_command_prints_the_end_is_taken(collector):
    collector.fake("dmesg", "echo 0123456789")
    archive = collector.archive(patch="""
g.COMMANDS, g.LIMIT = ['dmesg'], 4
g.find_processes = lambda _: {}""")
    assert len(archive.members["machine/proc/version"]) == 4
    assert archive.text("commands/dmesg.txt") == "789\n"
    assert archive.lacks("dmesg") == "only its end was taken, without the first 7 bytes"


# ------------------------------------------------------------- more files

def test_more_files_are_taken_and_their_names_do_not_collide(collector, folder):
    for name in ("a", "b", "a.2", "\udcff\n"):
        (folder / name).mkdir()
        (folder / name / "file").write_text(f"of {name!a}")
    (folder / "link").symlink_to("a/file")
    (folder / "file.2").write_text("its own name")
    archive = collector.archive("-f", ",".join([
        f"{folder}/a/file", f"{folder}/b/file", f"{folder}/file.2", f"{folder}/link"]),
        "-f", f"{folder}/\udcff\n/file,{folder}/a.2/file,")
    more = {name[5:]: archive.text(name) for name in archive.members
            if name.startswith("more/")}
    assert more == {"file": "of 'a'", "file.2": "of 'b'", "file.2.2": "its own name",
                    "link": "of 'a'", "file.3": r"of '\udcff\n'", "file.4": "of 'a.2'"}


def test_what_is_no_regular_file_is_refused_with_a_note(collector, folder):
    os.mkfifo(folder / "fifo")
    (folder / "link").symlink_to("fifo")
    refused = [f"{folder}/fifo", f"{folder}/link", f"{folder}", "/dev/zero", "/dev/tty"]
    with subprocess.Popen(["sh", "-c", "echo x >fifo"], cwd=folder) as writer:
        archive = collector.archive("-f", ",".join(refused + [f"{folder}/none"]))
        # it was not opened: that would have let the writer go on
        assert writer.poll() is None
        writer.kill()
    for path in refused:
        assert archive.lacks(path) == "not a regular file"
    assert archive.lacks(f"{folder}/none") == "No such file or directory"
    assert not any(name.startswith("more/") for name in archive.members)


def test_a_name_cannot_add_lines_to_the_account(collector, folder):
    archive = collector.archive("-f", f"{folder}/x\n/etc/passwd: no")
    assert archive.lacks("/etc/passwd") is None
    assert archive.lacks(f"{folder}/x?/etc/passwd: no") == "No such file or directory"


# ----------------------------------------------------- whole, or not at all

def test_an_archive_that_is_there_is_not_overwritten(collector):
    at_once = FEW + "\ng.time.strftime = lambda *_: '20260101_000000'"
    name = "gds_log_20260101_000000_" + re.sub(r"[^\w.-]", "_", os.uname().nodename)
    first = collector.out / f"{name}.tar.gz"
    first.write_text("mine")
    archives = [collector.archive(patch=at_once) for _ in range(2)]
    assert [archive.path.name for archive in archives] == [
        f"{name}_2.tar.gz", f"{name}_3.tar.gz"]
    assert first.read_text() == "mine"
    assert len(collector.left()) == 3


def test_without_standard_output_it_is_made_in_silence(collector):
    assert collector.run(preexec_fn=lambda: os.close(1)) == ("", "")
    assert "missing.txt" in Archive(collector.out / collector.left()[0])


def fails(collector, *args, **more):
    said, complaint = collector.run(*args, status=1, **more)
    assert said == ""
    line, = complaint.splitlines()
    start = f"gds_log_collection.py: no archive in {more.get('out') or collector.out}: "
    assert line.startswith(start)
    return line[len(start):]


@pytest.mark.parametrize("size", [0, 4096, 40000])
def test_a_file_that_may_not_grow_leaves_nothing(size, collector, folder):
    (folder / "noise").write_bytes(os.urandom(MIB))
    assert fails(
        collector, "-f", f"{folder}/noise", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (size, size))) == "File too large"
    assert collector.left() == []


def test_a_full_disk_leaves_nothing(collector, folder):
    (folder / "noise").write_bytes(os.urandom(MIB))
    mount = ["unshare", "-m", "sh", "-c",
             f'mount -t tmpfs -o size=256k none {collector.out} && "$@"; '
             f"s=$?; ls -A {collector.out}; exit $s", "sh"]
    if subprocess.run([*mount, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespace of one's own")
    done = subprocess.run(
        [*mount, sys.executable, collector.bin / SCRIPT.name, "-d", collector.out,
         "-f", folder / "noise"], env=environment(), check=False, text=True,
        capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"gds_log_collection.py: no archive in {collector.out}: "
                           "No space left on device\n")


def test_a_destination_that_is_none_is_told_at_once(collector):
    file = collector.out / "file"
    file.write_text("")
    slow = "g.fill = lambda *_: time.sleep(1000)"
    assert fails(collector, out=collector.out / "none", patch=slow) == \
        "No such file or directory"
    assert fails(collector, out=file, patch=slow) == "Not a directory"
    assert fails(collector, out="/proc", patch=slow)
    assert collector.left() == ["file"]


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_disk_that_fails_at_the_last_moment_leaves_nothing(call, collector):
    assert fails(collector, patch=FEW + f"""
def fail(*_):
    raise OSError(5, "Input/output error")
g.os.{call} = fail""") == "Input/output error"
    assert collector.left() == []


def heeds(number):
    """A shell that starts tests in the background has it ignored."""
    signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing(number, collector):
    pid = collector.cwd / "pid"
    collector.fake("lspci", f"echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 1000")
    with collector.start(
            patch="g.TIMEOUT = 1000; g.COMMANDS = ['lspci']",
            preexec_fn=lambda: heeds(number)) as process:
        while not pid.exists():
            assert process.poll() is None
            time.sleep(0.01)
        half, = collector.left()
        assert half.startswith(".") and not half.endswith(".tar.gz")
        assert stat.S_IMODE((collector.out / half).stat().st_mode) == 0o600
        process.send_signal(number)
        said, complaint = process.communicate(timeout=120)
    assert (process.returncode, said, complaint) == (128 + number, "", "")
    assert collector.left() == []
    assert gone(int(pid.read_text()))


INTERRUPTED = "g.fill = lambda *_: g.os.kill(g.os.getpid(), 2)\n"


def test_an_interrupt_while_a_command_starts_leaves_no_child(collector):
    pid = collector.cwd / "pid"
    collector.run(status=130, patch=f"""
g.COMMANDS, g.TIMEOUT = ["sleep 1000"], 1000
class Popen(g.subprocess.Popen):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        with open({str(pid)!r}, "w") as file:
            file.write(str(self.pid))
        g.os.kill(g.os.getpid(), 2)
g.subprocess.Popen = Popen""", preexec_fn=lambda: heeds(signal.SIGINT))
    assert collector.left() == []
    assert gone(int(pid.read_text()))


def test_a_second_interrupt_does_not_disturb_the_first(collector):
    collector.run(status=130, patch=INTERRUPTED + """
unlink = g.os.unlink
g.os.unlink = lambda path: (g.os.kill(g.os.getpid(), 2), unlink(path))""",
                  preexec_fn=lambda: heeds(signal.SIGINT))
    assert collector.left() == []


def test_an_interrupt_that_the_caller_ignores_is_ignored(collector):
    """As that of nohup, and of a shell's background."""
    collector.run(patch=INTERRUPTED,
                  preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert len(collector.left()) == 1


def test_the_archive_is_one_gzip_stream_from_start_to_end(collector):
    """What is renamed is whole: its check sum is there and right."""
    with gzip.open(collector.archive().path) as file:
        assert len(file.read()) % 512 == 0


# ------------------------------------------------------- usage, and the manual

@pytest.mark.parametrize("arguments", [
    ("-x",), ("-f",), ("-d",), ("stray",), ("-h=1",), ("--hel",)])
def test_what_cannot_be_meant_is_status_2(arguments, collector):
    done = subprocess.run([sys.executable, SCRIPT, *arguments], check=False, text=True,
                          capture_output=True, cwd=collector.cwd, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: gds_log_collection.py" in done.stderr
    assert list(collector.cwd.iterdir()) == []


def test_without_a_directory_it_is_the_current_one(collector):
    done = subprocess.run(
        [sys.executable, "-c", f"{IMPORT}{FEW}\ng.main([])", collector.bin],
        check=True, text=True, capture_output=True, cwd=collector.cwd,
        env=environment(), timeout=60)
    name, = (path.name for path in collector.cwd.iterdir())
    assert done.stdout.splitlines()[-1] in (name, f"./{name}")


def test_help_and_manual_have_every_option():
    text = subprocess.run([sys.executable, SCRIPT, "-h"], check=True, text=True,
                          capture_output=True, timeout=60).stdout
    for option in ("-d DIR", "-f FILE1,FILE2,...", "-h, --help"):
        assert option in text
    for option in ("-d DIR", "-f FILE1,FILE2,..."):
        letter, value = option[1:].lower().split(" ")
        assert f"\n.It Fl {letter} Ar {value}\n" in PAGE


def test_the_manual_tells_all_that_is_taken(collector):
    code = f"{IMPORT}print('\\n'.join([*g.FILES, *g.COMMANDS]))"
    taken = subprocess.run([sys.executable, "-c", code, collector.bin], check=True,
                           text=True, capture_output=True, timeout=60).stdout
    listed = re.findall(r"^\.Bd -literal.*\n((?:[^.].*\n)+)\.Ed", PAGE, re.M)
    assert "".join(listed[:2]) == taken
    patterns = re.findall(r'^(?:VARIABLES|SECRET) = re.compile\(r?"(.*?)"',
                          SCRIPT.read_text(), re.M)
    assert len(patterns) == 2
    for word in re.findall(r"[A-Z_]{3,}", " ".join(patterns)):
        assert re.search(rf"\b{word}_?\b", PAGE), word
