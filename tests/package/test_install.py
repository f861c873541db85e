# SPDX-License-Identifier: Apache-2.0
"""What `meson install` leaves, and programs that are built on it."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import CONSUMER, ROOT, need, plain_environment, run

BUILD = os.environ["OCF_BUILD_ROOT"]
PREFIX = os.environ["OCF_PREFIX"].lstrip("/")
LIBDIR = os.environ["OCF_LIBDIR"]
TEXT = "bytes of a stranger's file"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The prefix of an installed tree."""
    dest = tmp_path_factory.mktemp("dest")
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", dest)
    return dest / PREFIX


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_text(TEXT)
    return path


def runs_on(tree, program, file):
    """Runs it; true if it read the file with the library of the tree."""
    where = tree / LIBDIR
    said = run(program, file, cwd=file.parent, env=plain_environment(
        LD_LIBRARY_PATH=str(where))).splitlines()
    assert said[1] == TEXT
    return pathlib.Path(said[0]).resolve() == (where / "libcufile.so.0").resolve()


def test_a_new_compilers_warning_stops_no_build_of_a_user():
    options = json.loads(run("meson", "introspect", "--buildoptions",
                             ROOT / "meson.build"))
    assert [o["value"] for o in options if o["name"] == "werror"] == [False]


def test_the_tree_has_these_files_and_no_others(tree):
    found = {path.relative_to(tree).as_posix() for path in tree.rglob("*")
             if not path.is_dir()}
    manuals = {f"share/man/{page.parent.name}/{page.name}"
               for page in (ROOT / "man").glob("man?/*")}
    libraries = {f"{LIBDIR}/libcufile.so{end}" for end in ("", ".0", ".0.1.0")}
    assert found - manuals == libraries | {
        "include/cufile.h", "include/cufile_legacy.h", "include/opencufile.h",
        "include/opencufile_stats.h",
        f"{LIBDIR}/pkgconfig/opencufile.pc",
        f"{LIBDIR}/cmake/opencufile/opencufileConfig.cmake",
        f"{LIBDIR}/cmake/opencufile/opencufileConfigVersion.cmake",
        "bin/gds_log_collection.py", "bin/gds_stats", "bin/gdscheck", "bin/gdscp", "bin/gdsio",
        "bin/gdsio_verify", "bin/ocf-run",
        "share/opencufile/cufile.json"}
    assert manuals <= found


def test_nothing_is_installed_where_others_keep_their_configuration(tree):
    top = tree.parents[len(pathlib.Path(PREFIX).parts) - 1]
    assert [path.name for path in top.iterdir()] == [pathlib.Path(PREFIX).parts[0]]


def test_the_links_lead_to_the_library_of_that_soname(tree):
    folder = tree / LIBDIR
    assert os.readlink(folder / "libcufile.so") == "libcufile.so.0"
    assert os.readlink(folder / "libcufile.so.0") == "libcufile.so.0.1.0"
    need("readelf")
    assert "[libcufile.so.0]" in run("readelf", "-d", folder / "libcufile.so")


def test_the_library_needs_libc_yyjson_and_liburing_and_no_more(tree):
    need("readelf")
    said = run("readelf", "-d", tree / LIBDIR / "libcufile.so")
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", said))
    assert {name.split(".so")[0] for name in needed} <= {
        "libc", "libyyjson", "liburing", "libpthread", "libdl",
        "ld-linux-x86-64", "ld-linux-aarch64"}
    assert "RUNPATH" not in said and "RPATH" not in said


@pytest.mark.parametrize("tool", ["gds_stats", "gdscheck", "gdscp", "gdsio",
                                  "gdsio_verify"])
def test_an_installed_tool_finds_all_it_is_linked_to(tree, tool):
    said = run("ldd", tree / "bin" / tool, env=plain_environment(
        LD_LIBRARY_PATH=str(tree / LIBDIR)))
    assert "not found" not in said
    linked = re.findall(r"libcufile\.so\.0 => (\S+)", said)
    assert linked in ([], [str(tree / LIBDIR / "libcufile.so.0")])


def test_the_installed_ocf_run_takes_the_library_beside_it(tree):
    said = run(tree / "bin/ocf-run", "-n", "true").strip()
    assert pathlib.Path(said).samefile(tree / LIBDIR / "libcufile.so.0")


def test_the_installed_gdscp_copies(tree, tmp_path):
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(os.urandom(1234567))
    run(tree / "bin/gdscp", source, copy, cwd=tmp_path, env=plain_environment(
        LD_LIBRARY_PATH=str(tree / LIBDIR)))
    assert copy.read_bytes() == source.read_bytes()


NOTE = """
import ctypes, sys
class Error(ctypes.Structure):
    _fields_ = [("err", ctypes.c_int), ("cu_err", ctypes.c_int)]
note = ctypes.CDLL(sys.argv[1]).ocf_config_note
note.restype = Error
text = ctypes.create_string_buffer(1000)
print(note(0, text, ctypes.c_size_t(1000)).err, text.value.decode())
"""


def note_on(tree, configuration):
    """The first thing the library has to say about it; 5022: nothing."""
    return run(sys.executable, "-c", NOTE, tree / LIBDIR / "libcufile.so.0",
               cwd=configuration.parent, env=plain_environment(
                   CUFILE_ENV_PATH_JSON=str(configuration)))


def test_the_example_configuration_is_accepted_whole(tree, tmp_path):
    example = tree / "share/opencufile/cufile.json"
    assert note_on(tree, example).startswith("5022")
    worse = tmp_path / "cufile.json"
    worse.write_text(example.read_text().replace('"nvtx"', '"nvtxx"'))
    assert note_on(tree, worse).startswith("0 ")


def test_pkg_config_builds_a_program_that_reads(tree, tmp_path, file):
    need("pkg-config", "gcc")
    top = str(tree)[:-len(PREFIX)].rstrip("/")
    flags = run("pkg-config", "--cflags", "--libs", "opencufile",
                env=plain_environment(
                    PKG_CONFIG_SYSROOT_DIR=top,
                    PKG_CONFIG_LIBDIR=str(tree / LIBDIR / "pkgconfig")))
    program = tmp_path / "consumer"
    run("gcc", "-D_GNU_SOURCE", CONSUMER / "consumer.c", "-o", program,
        *flags.split(), f"-I{tree}/include", f"-L{tree / LIBDIR}", "-ldl")
    assert runs_on(tree, program, file)


def cmake(tree, build, *options):
    return subprocess.run(
        ["cmake", "-S", CONSUMER, "-B", build, f"-DCMAKE_PREFIX_PATH={tree}",
         f"-DCMAKE_LIBRARY_ARCHITECTURE={pathlib.Path(LIBDIR).name}", *options],
        env=plain_environment(), check=False, capture_output=True, text=True)


def test_cmake_builds_a_program_that_reads(tree, tmp_path, file):
    need("cmake", "gcc")
    done = cmake(tree, tmp_path / "build", "-DWANTED=0.1")
    assert done.returncode == 0, done.stderr
    run("cmake", "--build", tmp_path / "build")
    assert runs_on(tree, tmp_path / "build/consumer", file)


def test_cmake_refuses_a_version_that_is_not_there(tree, tmp_path):
    need("cmake", "gcc")
    done = cmake(tree, tmp_path / "build", "-DWANTED=1.0")
    assert done.returncode != 0
    assert "compatible with requested version" in done.stderr


def test_cmake_finds_all_of_it_through_a_link_to_the_libraries(tree, tmp_path, file):
    need("cmake", "gcc")
    root, top = tmp_path / "root", pathlib.Path(LIBDIR).parts[0]
    root.mkdir()
    (root / top).symlink_to(tree / top)
    done = cmake(root, tmp_path / "build")
    assert done.returncode == 0, done.stderr
    run("cmake", "--build", tmp_path / "build")
    assert runs_on(tree, tmp_path / "build/consumer", file)


def test_a_moved_tree_still_builds_programs(tree, tmp_path, file):
    need("cmake", "gcc")
    moved = tmp_path / "elsewhere"
    run("cp", "-a", tree, moved)
    done = cmake(moved, tmp_path / "build")
    assert done.returncode == 0, done.stderr
    run("cmake", "--build", tmp_path / "build")
    assert runs_on(moved, tmp_path / "build/consumer", file)
