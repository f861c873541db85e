# SPDX-License-Identifier: Apache-2.0
"""The packages of `./dev package`: what is in them, and that they get along
with NVIDIA's files, whoever packed those.

Each test installs with dpkg into a root of its own that holds nothing else;
which library the loader would take there is what ldconfig's cache says.
"""
import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import pytest

from conftest import ROOT, need, plain_environment, run

OUT = pathlib.Path(os.environ["OCF_PACKAGES"])
NAMES = ["libcufile-opencufile-dev", "libcufile0-opencufile",
         "opencufile-default", "opencufile-tools", "python3-cufile"]
NVIDIA = "usr/local/cuda-13.0/targets/x86_64-linux/lib"


@pytest.fixture(scope="module")
def packages():
    need("dpkg-deb", "dpkg-shlibdeps", "ldconfig")
    if os.geteuid() != 0:
        pytest.skip("dpkg installs as root only")
    run(ROOT / "scripts/package.sh", OUT / "tree", OUT / "packages")
    return OUT / "packages"


@pytest.fixture(scope="module")
def multiarch():
    need("dpkg-architecture")
    return run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()


class Machine:
    """A root with dpkg's books and nothing else."""

    def __init__(self, root, packages, multiarch):
        self.root, self.packages = root, packages
        self.lib = f"/usr/lib/{multiarch}"
        for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates",
                       "var/lib/dpkg/triggers", "etc/ld.so.conf.d", "var/cache"):
            (root / folder).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        (root / "etc/ld.so.conf").write_text("include /etc/ld.so.conf.d/*.conf\n")
        # as libc's own file of that name says
        (root / "etc/ld.so.conf.d" / f"{multiarch}.conf").write_text(
            f"/lib/{multiarch}\n{self.lib}\n")

    def dpkg(self, *arguments):
        return subprocess.run(
            ["dpkg", f"--root={self.root}", "--force-depends",
             "--force-unsafe-io", "--force-script-chrootless",
             *map(str, arguments)], check=False, capture_output=True, text=True,
            env=plain_environment(LC_ALL="C"))

    def install(self, *debs):
        done = self.dpkg("-i", *debs)
        assert done.returncode == 0, done.stderr
        return done

    def ours(self, *names):
        return [next(self.packages.glob(f"{name}_*.deb")) for name in names]

    def found(self):
        """What a program that needs libcufile.so.0 would get."""
        run("ldconfig", "-r", self.root)
        for line in run("ldconfig", "-r", self.root, "-p").splitlines():
            if line.split()[:1] == ["libcufile.so.0"]:
                return line.split()[-1]
        return None

    def is_ours(self, path):
        real = os.path.realpath(f"{self.root}{path}")
        return b"ocf_explain_read" in pathlib.Path(real).read_bytes()


@pytest.fixture
def machine(tmp_path, packages, multiarch):
    return Machine(tmp_path / "root", packages, multiarch)


def test_each_says_what_it_is_as_debian_wants_it(packages, tmp_path):
    need("dpkg-parsechangelog")
    for name in NAMES:
        deb, folder = next(packages.glob(f"{name}_*.deb")), tmp_path / name
        run("dpkg-deb", "-x", deb, folder)
        log = folder / "usr/share/doc" / name / "changelog.Debian"
        run("gunzip", f"{log}.gz")
        assert run("dpkg-parsechangelog", "-l", log, "-S", "Version").strip() \
            == run("dpkg-deb", "-f", deb, "Version").strip()
        for library in folder.rglob("lib*.so.*"):
            if not library.is_symlink():
                assert library.stat().st_mode & 0o777 == 0o644


def test_lintian_has_nothing_to_say(packages):
    """But that the maintainers have no address, and are not Debian's."""
    need("lintian")
    known = ["bogus-mail-host", "bogus-mail-host-in-debian-changelog",
             "initial-upload-closes-no-bugs"]
    assert not run("lintian", "--allow-root", "--fail-on", "none",
                   "--suppress-tags", ",".join(known), *packages.glob("*.deb"))


def foreign(folder, name, files, fields=""):
    """A package of somebody else's: {path: content, or Path it links to}."""
    tree = folder / name
    for path, content in {"DEBIAN/control": (
            f"Package: {name}\nVersion: 12.2-1\nArchitecture: all\n{fields}"
            "Maintainer: x <x@localhost>\nDescription: x\n"), **files}.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pathlib.Path):
            target.symlink_to(content)
        else:
            target.write_bytes(content if isinstance(content, bytes)
                               else content.encode())
    run("dpkg-deb", "--root-owner-group", "--build", tree, folder)
    return next(folder.glob(f"{name}_*.deb"))


@pytest.fixture
def other_library():
    """Another libcufile.so.0, as bytes."""
    return pathlib.Path(os.environ["OCF_IMPOSTOR"]).read_bytes()


@pytest.fixture
def toolkit(tmp_path, other_library):
    """NVIDIA's packages: all of it below /usr/local/cuda-13.0."""
    return foreign(tmp_path, "libcufile-13-0", {
        f"{NVIDIA}/libcufile.so.1.15.1": other_library,
        f"{NVIDIA}/libcufile.so.0": pathlib.Path("libcufile.so.1.15.1"),
        "usr/local/cuda-13.0/gds/cufile.json": "{}",
        "etc/ld.so.conf.d/000_cuda.conf": f"/{NVIDIA}\n"})


def files_of(deb):
    return {line.split(None, 5)[5].split(" -> ")[0][1:] for line in
            run("dpkg-deb", "-c", deb).splitlines() if not line.startswith("d")}


def test_every_file_is_in_one_package(packages):
    debs = list(packages.glob("*.deb"))
    assert sorted(deb.name.split("_")[0] for deb in debs) == NAMES
    seen = [path for deb in debs for path in files_of(deb)]
    assert len(seen) == len(set(seen))
    assert not [path for path in seen if not path.startswith(
        ("/usr/", "/etc/ld.so.conf.d/0000-opencufile.conf"))]
    assert not [path for path in seen if path.startswith("/usr/local")]


def test_nobody_but_root_owns_or_writes_a_packed_file(packages):
    for deb in packages.glob("*.deb"):
        for line in run("dpkg-deb", "-c", deb).splitlines():
            mode, owner = line.split()[:2]
            assert owner == "root/root", line
            assert mode[0] == "l" or mode[5] != "w" and mode[8] != "w", line


def test_the_library_package_depends_on_what_it_is_linked_to(packages):
    deb = next(packages.glob("libcufile0-opencufile_*.deb"))
    depends = run("dpkg-deb", "-f", deb, "Depends")
    assert all(name in depends for name in ("libc6", "liburing2", "libyyjson0"))
    assert "cuda" not in depends


def function_names(path):
    return {line.split()[-1] for line in run("readelf", "-sW", path).splitlines()
            if " FUNC " in line}


def test_what_is_packed_keeps_the_names_for_a_backtrace(
        packages, machine, wheel_installed):
    need("readelf")
    machine.install(*machine.ours("libcufile0-opencufile", "opencufile-tools"))
    for library in (f"{machine.root}{machine.lib}/libcufile.so.0",
                    wheel_installed / "libcufile.so.0"):
        assert "cf_request_run" in function_names(library)
    assert "main" in function_names(machine.root / "usr/bin/gdscp")


def test_packing_twice_gives_the_same_bytes(packages, tmp_path):
    before = {deb.name: deb.read_bytes() for deb in packages.iterdir()}
    run(ROOT / "scripts/package.sh", OUT / "tree", tmp_path / "again")
    after = {deb.name: deb.read_bytes()
             for deb in (tmp_path / "again").iterdir()}
    assert before == after


def test_packages_have_the_same_time_where_git_cannot_tell(packages, tmp_path):
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\nexit 1\n")
    git.chmod(0o755)
    env = plain_environment(PATH=f"{tmp_path}:{os.environ['PATH']}")
    env.pop("SOURCE_DATE_EPOCH", None)
    run(ROOT / "scripts/package.sh", OUT / "tree", tmp_path / "again", env=env)
    written = int(os.stat(ROOT / "CHANGELOG.md").st_mtime)
    for deb in (tmp_path / "again").glob("*.deb"):
        # of the first member of the archive
        assert int(deb.read_bytes()[8 + 16:8 + 28]) == written


def test_all_packages_install_and_go_without_a_trace(machine):
    before = sorted(machine.root.rglob("*"))
    machine.install(*machine.ours(*NAMES))
    assert machine.is_ours(machine.found())
    assert (machine.root / "usr/include/cufile.h").exists()
    python = machine.root / "usr/lib/python3/dist-packages"
    run("/usr/bin/python3", "-m", "compileall", "-q", python)
    assert list(python.rglob("*.pyc"))
    done = machine.dpkg("--purge", *NAMES)
    assert done.returncode == 0, done.stderr
    left = [path for path in sorted(machine.root.rglob("*"))
            if path not in before and "var/" not in str(path)
            and path.name != "ld.so.cache"]
    assert left == []


def test_the_installed_tools_run_where_the_library_is_the_roots(machine, tmp_path):
    machine.install(*machine.ours("libcufile0-opencufile", "opencufile-tools"))
    lib = f"{machine.root}{machine.lib}"
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(os.urandom(345678))
    run(machine.root / "usr/bin/gdscp", source, copy, cwd=tmp_path,
        env=plain_environment(LD_LIBRARY_PATH=lib))
    assert copy.read_bytes() == source.read_bytes()
    said = run(machine.root / "usr/bin/ocf-run", "-n", "true").strip()
    assert pathlib.Path(said).samefile(f"{lib}/libcufile.so.0")


def test_the_package_of_the_same_library_gives_way(machine, tmp_path, other_library):
    """Replacing: Debian's libcufile0 is in the same place."""
    theirs = foreign(tmp_path, "libcufile0", {
        f"{machine.lib[1:]}/libcufile.so.0": other_library})
    machine.install(theirs)
    assert not machine.is_ours(machine.found())
    done = machine.dpkg("-B", "-i", *machine.ours("libcufile0-opencufile"))
    assert done.returncode == 0, done.stderr
    assert "removing libcufile0" in (done.stdout + done.stderr).lower()
    assert machine.is_ours(machine.found())


def test_a_package_that_asks_for_a_version_of_the_library_is_content(
        machine, tmp_path):
    """What is built on Debian's libcufile-dev asks so."""
    machine.install(*machine.ours("libcufile0-opencufile"))
    program = foreign(tmp_path, "program", {}, "Depends: libcufile0 (>= 1.4)\n")
    run("dpkg", f"--root={machine.root}", "--force-script-chrootless", "-i", program,
        env=plain_environment(LC_ALL="C"))


def test_both_packages_of_the_library_at_once_are_refused(
        machine, tmp_path, other_library):
    machine.install(*machine.ours("libcufile0-opencufile"))
    theirs = foreign(tmp_path, "libcufile0", {
        f"{machine.lib[1:]}/libcufile.so.0": other_library})
    done = machine.dpkg("-i", theirs)
    assert done.returncode != 0
    assert "conflict" in done.stderr.lower()
    assert machine.is_ours(machine.found())


def test_beside_a_toolkit_nothing_is_overwritten(machine, toolkit):
    machine.install(toolkit, *machine.ours("libcufile0-opencufile"))
    assert machine.found() == f"/{NVIDIA}/libcufile.so.0"
    assert not machine.is_ours(machine.found())
    assert machine.is_ours(f"{machine.lib}/libcufile.so.0")


def test_opencufile_default_goes_before_a_toolkit_until_it_is_removed(
        machine, toolkit):
    machine.install(toolkit, *machine.ours("libcufile0-opencufile",
                                           "opencufile-default"))
    assert machine.is_ours(machine.found())
    assert not machine.is_ours(f"/{NVIDIA}/libcufile.so.0")
    done = machine.dpkg("--purge", "opencufile-default")
    assert done.returncode == 0, done.stderr
    assert machine.found() == f"/{NVIDIA}/libcufile.so.0"


def test_a_diverted_library_is_ours_through_an_upgrade_and_back_after(
        machine, toolkit):
    """Diverting: for programs that name the toolkit's path themselves."""
    need("dpkg-divert")
    machine.install(toolkit, *machine.ours("libcufile0-opencufile"))
    theirs = f"/{NVIDIA}/libcufile.so.1.15.1"
    aside = f"/{NVIDIA}/nvidia.libcufile.so.1.15.1"
    divert = ["dpkg-divert", f"--root={machine.root}", "--local", "--rename"]
    ours = pathlib.Path(os.path.relpath(machine.lib, f"/{NVIDIA}"),
                        "libcufile.so.0")
    run(*divert, "--divert", aside, "--add", theirs)
    os.symlink(ours, f"{machine.root}{theirs}")
    for _ in ("now", "after an upgrade"):
        assert machine.is_ours(machine.found())  # ldconfig has made its links
        assert machine.is_ours(f"/{NVIDIA}/libcufile.so.0")
        assert not machine.is_ours(aside)
        machine.install(toolkit)
    os.unlink(f"{machine.root}{theirs}")
    run(*divert, "--remove", theirs)
    assert machine.found() == f"/{NVIDIA}/libcufile.so.0"
    assert not machine.is_ours(machine.found())


@pytest.fixture
def wheel_installed(packages, tmp_path):
    """The folder `cufile` of the wheel, installed with pip where it can be."""
    wheel = next(packages.glob("cufile-*.whl"))
    installed = tmp_path / "installed"
    if subprocess.run(["python3", "-m", "pip", "--version"], check=False,
                      capture_output=True).returncode == 0:
        run("python3", "-m", "pip", "install", "--no-deps", "--no-index",
            "--disable-pip-version-check", "--target", installed, wheel)
    else:
        zipfile.ZipFile(wheel).extractall(installed)
    return next(installed.rglob("cufile/__init__.py")).parent


READS = ("import cufile, sys\n"
         "with cufile.open(sys.argv[1]) as file:\n"
         "    room = bytearray(54321)\n"
         "    assert file.read(room) == 54321\n"
         "assert room == open(sys.argv[1], 'rb').read()\n"
         "for line in open('/proc/self/maps') if len(sys.argv) < 3 else []:\n"
         "    if 'r-xp' in line and any(name in line for name in "
         "('libcufile', 'libyyjson', 'liburing')):\n"
         "        print(line.split()[-1])\n"
         "print(cufile.library_path())\n")


def test_the_wheel_reads_with_the_libraries_that_it_brings(wheel_installed, tmp_path):
    data = tmp_path / "data"
    data.write_bytes(os.urandom(54321))
    said = run("python3", "-B", "-c", READS, data, cwd=tmp_path,
               env=plain_environment(PYTHONPATH=str(wheel_installed.parent)))
    found = [pathlib.Path(line) for line in said.split()]
    assert len(set(found)) == 3 and len(found) == 4
    assert all(path.resolve().parent == wheel_installed.resolve() for path in found)


def test_the_wheel_brings_ocf_run_which_finds_its_library(packages, tmp_path):
    if subprocess.run(["python3", "-m", "venv", "--help"], check=False,
                      capture_output=True).returncode or \
            subprocess.run(["python3", "-c", "import ensurepip"], check=False,
                           capture_output=True).returncode:
        pytest.skip("no python3-venv")
    run("python3", "-m", "venv", tmp_path / "venv")
    run(tmp_path / "venv/bin/pip", "install", "--no-deps", "--no-index",
        "--disable-pip-version-check", next(packages.glob("cufile-*.whl")))
    env = plain_environment()
    said = run(tmp_path / "venv/bin/ocf-run", tmp_path / "venv/bin/python", "-c",
               "import cufile; print(cufile.library_path())", env=env)
    library, = (tmp_path / "venv").glob("lib/python3*/site-packages/cufile/libcufile.so.0")
    assert os.path.samefile(said.strip(), library)


def test_the_wheel_has_the_licences_of_what_it_brings(wheel_installed):
    texts = {path.name: path.read_text()
             for path in (wheel_installed / "licenses").iterdir()}
    assert any("yyjson" in name for name in texts)
    assert any("liburing" in name for name in texts)
    assert all("MIT" in text or "Expat" in text for text in texts.values())


def linked_to(path):
    """The files that the loader maps for a program or a library."""
    said = subprocess.run(["ldd", path], check=False, capture_output=True,
                          text=True).stdout
    return {word for word in said.split() if word.startswith("/")}


def bare_root(root):
    """A root with a Python, the libraries that it needs, and nothing else."""
    python = pathlib.Path("/usr/bin/python3").resolve()
    library = pathlib.Path(run(python, "-c", "import os; print(os.__file__)")
                           .strip()).parent
    needed = linked_to(python)
    for module in library.glob("lib-dynload/*.so"):
        needed |= linked_to(module)
    assert not [path for path in needed if "yyjson" in path or "uring" in path]
    for path in needed | {str(python)}:
        target = root / path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copytree(library, root / str(library)[1:], symlinks=True,
                    ignore=shutil.ignore_patterns(
                        "test", "tests", "idlelib", "__pycache__", "dist-packages",
                        "site-packages", "config-*", "lib2to3", "ensurepip"))
    return python


def test_the_wheel_works_in_a_root_that_has_python_and_libc_alone(
        wheel_installed, tmp_path):
    if os.geteuid() != 0 or not pathlib.Path("/usr/bin/python3").exists():
        pytest.skip("a root of one's own needs root, and Debian's Python")
    root = tmp_path / "bare"
    python = bare_root(root)
    shutil.copytree(wheel_installed, root / "cufile")
    (root / "data").write_bytes(os.urandom(54321))
    said = run("chroot", root, python, "-B", "-c", "import sys\n"
               "sys.path.insert(0, '/')\n" + READS, "/data", "no /proc",
               env={"PATH": "/usr/sbin:/usr/bin", "LC_ALL": "C.UTF-8"})
    assert said.strip() == "/cufile/libcufile.so.0"


def test_the_wheel_names_the_libc_that_it_needs(packages):
    wheel = next(packages.glob("cufile-*.whl"))
    assert re.fullmatch(r"cufile-[0-9.]+-py3-none-manylinux_2_\d+_\w+\.whl",
                        wheel.name)
