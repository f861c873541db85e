# SPDX-License-Identifier: Apache-2.0
"""ocf-run: one libcufile for any command, and never two."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, plain_environment

RUN = str(ROOT / "tools/ocf-run")
LIBRARY = os.environ.get("OPENCUFILE_LIBRARY", "")
pytestmark = pytest.mark.skipif(" " in LIBRARY, reason="it refuses such a path")
SAY = ("import os; print(os.environ['LD_PRELOAD']); "
       "print(os.environ['LD_LIBRARY_PATH'].split(':')[0]); "
       "print(sorted({line.split()[-1] for line in open('/proc/self/maps') "
       "if 'libcufile' in line}))")


def run(*command, timeout=None, **environment):
    env = plain_environment(**{"OPENCUFILE_LIBRARY": LIBRARY, **environment})
    return subprocess.run([RUN, *command], env=env, check=False, timeout=timeout,
                          capture_output=True, text=True)


@pytest.fixture(autouse=True)
def built(cufile):
    """The library is there."""


@pytest.fixture
def compiler():
    found = shutil.which("gcc") or shutil.which("cc")
    if not found:
        pytest.skip("no compiler")
    return found


@pytest.fixture
def other(tmp_path, compiler):
    """Another libcufile, by another soname, and a program that needs it."""
    source = tmp_path / "other.c"
    source.write_text("int other(void) { return 7; }\n")
    library = tmp_path / "libcufile.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,-soname,libcufile.so.1",
                    source, "-o", library], check=True)
    main = tmp_path / "main.c"
    main.write_text("int other(void); int main(void) { return other(); }\n")
    program = tmp_path / "program"
    subprocess.run([compiler, main, library, f"-Wl,-rpath,{tmp_path}",
                    "-o", program], check=True)
    return library, program


@pytest.mark.parametrize("name", ["a blank", "a:colon", "a\ttab"])
def test_a_path_that_the_loader_would_cut_is_refused(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    library = folder / "libcufile.so.0"
    shutil.copy(LIBRARY, library)
    done = run(sys.executable, "-c", "print('ran')", OPENCUFILE_LIBRARY=str(library))
    assert (done.returncode, done.stdout) == (126, "")
    assert str(library) in done.stderr


def test_a_command_has_the_library_and_no_other(tmp_path):
    done = run(sys.executable, "-c", SAY, LD_LIBRARY_PATH=str(tmp_path))
    real = os.path.realpath(LIBRARY)
    folder = os.path.dirname(LIBRARY)
    assert done.stdout == f"{LIBRARY}\n{folder}\n['{real}']\n", done.stderr


def test_arguments_input_and_status_pass_through():
    done = run(sys.executable, "-c",
               "import sys; print(sys.argv[1:]); sys.exit(41)", "a b", "-n", "")
    assert (done.stdout, done.returncode) == ("['a b', '-n', '']\n", 41)


def test_a_program_of_another_library_with_the_same_name_runs_on_ours():
    program = os.environ.get("OCF_PRELOADED")
    if not program:
        pytest.skip("OCF_PRELOADED does not name the program")
    folder = os.path.dirname(program)
    done = run(program, LD_LIBRARY_PATH=folder)
    assert os.path.realpath(LIBRARY) in done.stdout
    assert folder not in done.stdout


def test_scripts_and_commands_on_the_path_run(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env -S python3\n" + SAY + "\n")
    script.chmod(0o755)
    done = run("script", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert os.path.realpath(LIBRARY) in done.stdout, done.stderr


@pytest.mark.parametrize("first", ["#!{0}", "#!/usr/bin/env {0}", "#!", "#! ",
                                   "#!/usr/bin/env -S", "#!/no/such",
                                   "#!/usr/bin/env -S -i python3"])
def test_a_script_that_leads_nowhere_is_left_to_the_kernel(tmp_path, first):
    script = tmp_path / "script"
    script.write_text(first.format(script) + "\n")
    script.chmod(0o755)
    done = run("-n", script, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, LIBRARY + "\n", "")


def test_only_telling_names_the_library_and_starts_nothing(tmp_path):
    done = run("-n", "touch", str(tmp_path / "made"))
    assert (done.stdout, done.returncode) == (LIBRARY + "\n", 0)
    assert not (tmp_path / "made").exists()


def test_a_preloaded_library_of_others_is_refused_by_name(other):
    done = run("true", LD_PRELOAD=f"/nowhere.so:{other[0]}")
    assert done.returncode == 126
    assert str(other[0]) in done.stderr and LIBRARY in done.stderr


def test_our_own_library_may_be_preloaded_already():
    assert run("true", LD_PRELOAD=LIBRARY).returncode == 0


def test_a_program_that_needs_another_library_too_is_refused_by_name(other):
    library, program = other
    assert subprocess.run([program], check=False).returncode == 7
    for option in ([], ["-n"]):
        done = run(*option, str(program))
        assert done.returncode == 126
        assert str(library) in done.stderr and str(program) in done.stderr


def test_a_library_that_is_not_ours_is_refused(other):
    done = run("true", OPENCUFILE_LIBRARY=str(other[0]))
    assert done.returncode == 126 and "no opencufile" in done.stderr
    done = run("true", OPENCUFILE_LIBRARY="/nowhere/libcufile.so.0")
    assert done.returncode == 126 and "/nowhere" in done.stderr


def test_a_program_where_nothing_is_preloaded_is_refused(tmp_path):
    program = tmp_path / "setuid"
    shutil.copy(shutil.which("true"), program)
    program.chmod(0o4755)
    done = run(str(program))
    assert done.returncode == 126 and "set-user-ID" in done.stderr


def test_wrong_command_lines_have_their_own_status():
    assert run().returncode == 2
    assert run("-x", "true").returncode == 2
    done = run("no-such-command-at-all")
    assert done.returncode == 127 and "no-such-command-at-all" in done.stderr


def test_help_is_given_on_standard_output():
    for option in ("-h", "--help"):
        done = run(option)
        assert (done.returncode, done.stderr) == (0, "")
        assert "-n " in done.stdout and "OPENCUFILE_LIBRARY" in done.stdout


def test_the_library_of_a_wheel_is_found_beside_it(tmp_path):
    folder = tmp_path / "lib/python3.13/site-packages/cufile"
    folder.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    shutil.copy(RUN, tmp_path / "bin/ocf-run")
    shutil.copy(LIBRARY, folder / "libcufile.so.0")
    done = subprocess.run([tmp_path / "bin/ocf-run", "-n", "true"], check=False,
                          env=plain_environment(OPENCUFILE_LIBRARY=None),
                          capture_output=True, text=True)
    assert done.stdout == f"{folder}/libcufile.so.0\n", done.stderr


def test_the_library_that_was_installed_with_it_is_found(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib/x86_64-linux-gnu").mkdir(parents=True)
    copy = tmp_path / "bin/ocf-run"
    shutil.copy(RUN, copy)
    env = plain_environment(OPENCUFILE_LIBRARY=None)
    command = [copy, "-n", "true"]
    done = subprocess.run(command, env=env, check=False, capture_output=True,
                          text=True)
    assert done.returncode == 126 and "OPENCUFILE_LIBRARY" in done.stderr
    installed = tmp_path / "lib/x86_64-linux-gnu/libcufile.so.0"
    shutil.copy(LIBRARY, installed)
    done = subprocess.run(command, env=env, check=False, capture_output=True,
                          text=True)
    assert pathlib.Path(done.stdout.strip()) == installed


def test_pytorch_that_opens_another_by_its_path_calls_this_one():
    pytest.importorskip("torch")
    done = run(sys.executable, "-c", "import torch", LD_DEBUG="bindings",
               LD_BIND_NOW="1")
    assert done.returncode == 0
    bound = {line.split(" to ")[1].split(" [")[0] for line in done.stderr.splitlines()
             if "libtorch" in line.split(" to ")[0] and "`cuFile" in line}
    if not bound:
        pytest.skip("this PyTorch has no cuFile")
    assert bound == {LIBRARY}
