# SPDX-License-Identifier: Apache-2.0
"""gdsio_verify as a person runs it, without a GPU driver and on the fake one:
what it prints, and that it finds a library that is careless with bytes."""
import os
import pathlib
import subprocess

import pytest

VERIFY = os.environ["OCF_GDSIO_VERIFY"]
CARELESS = os.environ["OCF_CARELESS"]
FAKE_DIR = str(pathlib.Path(os.environ["OCF_FAKECUDA"]).parent)
SIZE = 3_000_003
GOOD = "Data Verification Success"
BAD = "Data Verification Failed"

preloads = pytest.mark.skipif(
    os.environ.get("OCF_SANITIZED") == "1" or " " in CARELESS,
    reason="a sanitizer wants to be loaded before any other library, and the "
           "loader takes no path with a blank")


def environment(fake, **more):
    """Nothing of the caller's configuration, log or driver."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CUFILE_", "FAKECUDA_", "OCF_", "LD_"))}
    if fake:
        env["LD_LIBRARY_PATH"] = FAKE_DIR
        env["FAKECUDA_STRICT"] = "1"
    env.update(more)
    return env


class Verify:
    def __init__(self, folder, fake):
        self.folder = folder
        self.fake = fake
        # the first byte and that at 4099 differ
        (folder / "file").write_bytes(b"z" + os.urandom(4098) + b"b" +
                                      os.urandom(SIZE - 4100))

    def run(self, *args, status=0, **env):
        done = subprocess.run(
            [VERIFY, *map(str, args)], cwd=self.folder, check=False, text=True,
            capture_output=True, env=environment(self.fake, **env),
            timeout=120)
        assert done.returncode == status, (args, done)
        return done

    def refuses(self, *args, status=1):
        """What it says of it, and not that anything was verified."""
        done = self.run(*args, status=status)
        assert GOOD not in done.stdout, done
        return done.stderr


@pytest.fixture(params=["host", "fake"])
def verify(request, tmp_path):
    return Verify(tmp_path, request.param == "fake")


@pytest.fixture
def fake(tmp_path):
    return Verify(tmp_path, True)


# ------------------------------------------------------------ what it prints

def test_the_lines_are_those_that_the_original_prints(fake):
    out = fake.run("-f", "file", "-d", 0, "-n", 1, "-m", 0, "-s", "4k", "-o", 0,
                   "-t", 0).stdout
    assert out == (
        "gpu index :0,file :file, gpu buffer alignment :0, gpu buffer offset :0, "
        "gpu devptr offset :0, file offset :0, io_requested :4096, "
        "io_chunk_size :4096, bufregister :true, sync :0, nr ios :1,\n"
        "fsync :0,\nBatch mode: 0\n" + GOOD + "\n")


def test_without_a_gpu_host_memory_is_used_and_said(tmp_path):
    done = Verify(tmp_path, False).run("-f", "file")
    assert "no GPU to be had, using host memory" in done.stderr
    assert done.stdout.startswith("gpu index :-1,")


def test_host_memory_by_name_needs_no_note(verify):
    assert "no GPU" not in verify.run("-f", "file", "--host").stderr


@pytest.mark.parametrize("way", [[], ["-t", 0], ["--batch"]])
@pytest.mark.parametrize("what", [
    [], ["-S", "-o", 1], ["-n", 7, "-g", 1],
    ["-o", 511, "-s", "1M", "-n", 33, "-g", 512, "-S"],
    ["-g", "64K", "--buffer-offset", 3, "--devptr-offset", 4097],
    ["-o", SIZE - 1, "-s", 1]])
def test_right_bytes_are_right(fake, way, what):
    assert fake.run("-f", "file", *way, *what).stdout.endswith(GOOD + "\n")
    if way != ["-t", 0]:
        out = fake.run("-f", "file", "--host", *way, *what).stdout
        assert out.endswith(GOOD + "\n")


def test_streams_are_a_gpus(verify):
    assert "-t 0 is for the memory of a GPU" in verify.refuses(
        "-f", "file", "--host", "-t", 0)


def test_requests_share_the_range_and_none_is_empty(verify):
    (verify.folder / "ten").write_bytes(b"0123456789")
    out = verify.run("-f", "ten", "-n", 7, "--batch").stdout
    assert "io_chunk_size :2," in out and "nr ios :5," in out


# ------------------------------------------------------------- what it finds

@preloads
@pytest.mark.parametrize("how, said", [
    ("skips", "of the 3000003 bytes from there on are wrong"),
    ("spills", "bytes behind the range were changed"),
    ("slips", "offset 4099: the file has 62, the memory 7a; 1 of"),
    ("short", "1500001 bytes of 3000003"),
    ("cuFileRead", "Input/output error")])
def test_a_careless_library_is_found(verify, how, said):
    # of one byte more there must be one, and a registration would end there
    room = ["-s", SIZE - 1, "-S"] if how == "spills" else []
    done = verify.run("-f", "file", *room, status=1, LD_PRELOAD=CARELESS,
                      CARELESS=how)
    assert done.stdout.endswith(BAD + "\n"), done
    assert said in done.stderr, done


CALLS = {"cuFileRead": [], "cuFileReadAsync": ["-t", 0],
         "cuFileBatchIOSubmit": ["--batch"]}


@preloads
@pytest.mark.parametrize("call", CALLS)
def test_each_way_is_by_its_own_call(fake, call):
    for other, way in CALLS.items():
        done = fake.run("-f", "file", "-n", 3, *way, status=int(call == other),
                        LD_PRELOAD=CARELESS, CARELESS=call)
        assert (call in done.stderr) == (call == other), done


@preloads
def test_requests_are_where_they_were_asked_to_be(verify):
    done = verify.run("-f", "file", "-o", 500, "-s", 1000, "-n", 3, "-g", "64K",
                      "--buffer-offset", 3, "--devptr-offset", 4097,
                      LD_PRELOAD=CARELESS, CARELESS="tells")
    asked = [tuple(map(int, line.split())) for line in done.stderr.splitlines()
             if line[0].isdigit()]
    base = asked[0][0]
    assert (base - 3) % (128 << 10) == 64 << 10
    assert asked == [(base, 334, 500, 4097), (base, 334, 834, 4431),
                     (base, 332, 1168, 4765)]


# ------------------------------------------------------------------ mistakes

def test_what_is_no_file_is_refused(verify):
    os.mkfifo(verify.folder / "pipe")
    assert "neither a regular file nor" in verify.refuses("-f", "pipe")
    assert "neither a regular file nor" in verify.refuses("-f", ".")
    assert "No such file" in verify.refuses("-f", "none")


def test_more_than_there_is_is_refused(verify):
    (verify.folder / "empty").touch()
    assert "has 0 bytes" in verify.refuses("-f", "empty")
    assert f"has {SIZE} bytes" in verify.refuses("-f", "file", "-s", SIZE + 1)
    assert "bytes" in verify.refuses("-f", "file", "-o", SIZE)
    assert "11 requests for 10 bytes" in verify.refuses(
        "-f", "file", "-s", 10, "-n", 11)


def test_a_gpu_that_is_not_there_is_refused(verify):
    assert "GPU 77" in verify.refuses("-f", "file", "-d", 77)


@pytest.mark.parametrize("args", [
    [], ["-f"], ["-f", "file", "more"], ["-f", "file", "-d", "x"],
    ["-f", "file", "-s", "-1"], ["-f", "file", "-n", 0],
    ["-f", "file", "-n", 65537], ["-f", "file", "-t", 2],
    ["-f", "file", "-g", "2T"], ["-f", "file", "-m", 2],
    ["-f", "file", "--host", "-d", 0], ["-f", "file", "-q"]])
def test_a_wrong_command_line_is_refused(verify, args):
    assert "usage: gdsio_verify" in verify.refuses(*args, status=2)


def test_help_is_no_mistake(verify):
    assert verify.run("-h").stdout.startswith("usage: gdsio_verify -f FILE")


def test_a_result_that_cannot_be_written_is_a_failure(verify):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([VERIFY, "-f", "file"], cwd=verify.folder,
                              check=False, stdout=full, stderr=subprocess.PIPE,
                              env=environment(verify.fake), timeout=60)
    assert done.returncode == 1 and b"No space left" in done.stderr
