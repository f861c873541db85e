# SPDX-License-Identifier: Apache-2.0
"""gdscheck as people and scripts run it (contract 5.1)."""
import json
import os
import pathlib
import platform
import subprocess
import sys

import pytest

import machine

GDSCHECK = os.environ["OCF_GDSCHECK"]
GDSCP = os.environ["OCF_GDSCP"]
FAKE_DIR = str(pathlib.Path(os.environ["OCF_FAKECUDA"]).parent)
KINDS = ("host", "device", "managed")


def environment(**more):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CUFILE_", "OCF_", "FAKECUDA_"))}
    env["CUFILE_ENV_PATH_JSON"] = "/nonexistent"
    # not the fake driver that the build puts in every test's way
    env["LD_LIBRARY_PATH"] = ":".join(
        path for path in env.get("LD_LIBRARY_PATH", "").split(":")
        if path and not path.startswith(os.environ["OCF_BUILD_ROOT"]))
    for name, value in more.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = str(value)
    return env


def run(*arguments, status=0, prefix=(), **env):
    done = subprocess.run([*prefix, GDSCHECK, *map(str, arguments)],
                          env=environment(**env), capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.returncode == status, (arguments, done.stdout, done.stderr)
    return done


def ask(file, status=0, **env):
    return json.loads(run("--json", "-f", file, status=status, **env).stdout)


@pytest.fixture
def data(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(os.urandom(1 << 20))
    return file


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return machine.example(folder).root


def framed(title):
    line = "=" * len(title)
    return f" {line}\n {title}\n {line}\n"


CONFIGURATION = """\
 properties.use_pci_p2pdma : false
 properties.use_compat_mode : true
 properties.force_compat_mode : false
 properties.gds_rdma_write_support : true
 properties.use_poll_mode : false
 properties.poll_mode_max_size_kb : 4
 properties.max_batch_io_size : 128
 properties.max_batch_io_timeout_msecs : 5
 properties.max_direct_io_size_kb : 16384
 properties.max_device_cache_size_kb : 131072
 properties.per_buffer_cache_size_kb : 1024
 properties.max_device_pinned_mem_size_kb : 33554432
 properties.posix_pool_slab_size_kb : 4 1024 16384
 properties.posix_pool_slab_count : 128 64 64
 properties.rdma_peer_affinity_policy : RoundRobin
 properties.rdma_dynamic_routing : 0
 fs.generic.posix_unaligned_writes : false
 fs.lustre.posix_gds_min_kb: 0
 fs.lustre.use_pci_p2pdma : false
 fs.beegfs.posix_gds_min_kb: 0
 fs.beegfs.use_pci_p2pdma : false
 fs.scatefs.posix_gds_min_kb: 0
 fs.scatefs.use_pci_p2pdma : false
 fs.weka.rdma_write_support: false
 fs.nfs.use_pci_p2pdma : false
 fs.gpfs.gds_write_support: false
 fs.gpfs.gds_async_support: true
 fs.gpfs.use_pci_p2pdma : false
 fs.virtiofs.use_pci_p2pdma : false
 profile.cufile_stats : 0
 miscellaneous.api_check_aggressive : false
 execution.max_io_threads : 4
 execution.max_io_queue_depth : 128
 execution.parallel_io : true
 execution.min_io_threshold_size_kb : 8192
 execution.max_request_parallelism : 4
 properties.force_odirect_mode : false
 properties.prefer_iouring : false
 block.raid.use_pci_p2pdma : false
 block.nvme.use_pci_p2pdma : false
 block.nvmeof.use_pci_p2pdma : false
"""

DRIVERS = """\
 NVMe               : compat
 NVMeOF             : compat
 SCSI               : compat
 ScaleFlux CSD      : compat
 FSx Lustre         : compat
 NVMesh             : compat
 DDN EXAScaler      : compat
 IBM Spectrum Scale : compat
 NFS                : compat
 BeeGFS             : compat
 ScaTeFS            : compat
 VIRTIOFS           : compat
 WekaFS             : compat
 Userspace RDMA     : Unsupported
 --Mellanox PeerDirect : Disabled
 --DmaBuf support      : Disabled
 --rdma library        : Not Loaded (libcufile_rdma.so)
 --rdma devices        : Not configured
 --rdma_device_status  : Up: 0 Down: 0
"""


def cuda_version():
    """What libcuda.so.1 says on this machine, as the tool would hear it."""
    code = ("import ctypes\nn = ctypes.c_int()\n"
            "ctypes.CDLL('libcuda.so.1').cuDriverGetVersion(ctypes.byref(n))\n"
            "print(n.value)")
    done = subprocess.run(["python3", "-c", code], env=environment(),
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() or "0"


REGISTRY = ('options nvidia NVreg_RegistryDwords='
            '"RMForceStaticBar1=1;RmForceDisableIomapWC=1;"\n')
LACKS = {
    "kernel": " missing: CONFIG_PCI_P2PDMA in the kernel; run a kernel of "
              "Linux 6.2 or later that has it\n",
    "module": " missing: NVIDIA's open kernel module; install it, 565 or "
              "later\n",
    "static": f" missing: static BAR 1; {REGISTRY}",
    "wc": f" missing: BAR 1 without write-combining; {REGISTRY}",
    "bar": " missing: a BAR 1 as large as the GPU's memory; turn on Resizable "
           "BAR in the firmware\n",
    "multipath": " missing: nvme_core.multipath=N; needed before Linux 7.2 by "
                 "disks with several controllers\n",
}


def address_is_missing():
    if int(cuda_version()) >= 13030:
        return ""
    return (" missing: the CPU's address of GPU memory; a driver of CUDA 13.3 "
            "has one, or a program's provider (ocf_alias_set_provider)\n")


def with_mounts(script):
    """A shell's run with mounts of its own, which went well."""
    if subprocess.run(["unshare", "-m", "true"], check=False,
                      capture_output=True).returncode:
        pytest.skip("no mount namespace of one's own")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script],
                          env=environment(), capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done


class TestPeers:
    """Each condition of P2PDMA is seen where it is missing, and only there."""

    @pytest.fixture(name="one")
    def one_gpu(self, tmp_path):
        folder = tmp_path / "machine"
        folder.mkdir()
        one = machine.Machine(folder)
        one.gpu("/sys/devices/pci0000:00/0000:00:01.0", "NVIDIA H200", 131072)
        one.write("/proc/kallsyms", "0 T start_kernel\n"
                  "0 r p2pdma_pgmap_ops\n")
        self.driver(one, "Open Kernel Module", "580.65.06")
        self.params(one, "RMForceStaticBar1=1;RmForceDisableIomapWC=1;")
        return one

    @staticmethod
    def driver(one, kind, version):
        one.write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX "
                  f"{kind} for x86_64  {version}  Release Build\n")

    @staticmethod
    def params(one, registry):
        one.write("/proc/driver/nvidia/params", "EnableMSI: 1\n"
                  f'RegistryDwords: "{registry}"\nRmMsg: ""\n')

    @staticmethod
    def lacks(one):
        text = run("-p", "--root", one.root).stdout
        text = text.split(framed("PEER TO PEER INFO:"))[1]
        text = text.split(framed("PLATFORM INFO:"))[0]
        first, rest = text.split("\n", 1)
        assert first == (" GPU index 0 0000:00:01.0: disks cannot reach its "
                         "memory")
        assert rest.endswith(address_is_missing())
        rest = rest[:len(rest) - len(address_is_missing())]
        return [name for line in rest.splitlines(keepends=True)
                for name, text in LACKS.items() if text == line]

    def test_nothing_is_missing(self, one):
        assert not self.lacks(one)

    def test_the_kernel(self, one):
        one.write("/proc/kallsyms", "0 T start_kernel\n")
        assert self.lacks(one) == ["kernel"]

    @pytest.mark.parametrize("place", ["boot/config-{}",
                                       "lib/modules/{}/config"])
    def test_what_the_kernel_was_built_with_goes_before(self, one, place):
        place = place.format(os.uname().release)
        one.write(place, "# CONFIG_PCI_P2PDMA is not set\n")
        assert self.lacks(one) == ["kernel"]
        one.write(place, "CONFIG_PCI=y\nCONFIG_PCI_P2PDMA=y\n")
        one.write("/proc/kallsyms", "0 T start_kernel\n")
        assert not self.lacks(one)

    @pytest.mark.parametrize("kind, version", [
        ("x86_64 Kernel Module", "580.65.06"),
        ("Open Kernel Module", "560.35.03")])
    def test_the_module(self, one, kind, version):
        self.driver(one, kind, version)
        assert self.lacks(one) == ["module"]

    @pytest.mark.parametrize("version, registry, want", [
        ("580.65.06", "", ["wc"]),
        ("575.51.02", "", ["static", "wc"]),
        ("575.51.02", "RMForceStaticBar1=1;", ["wc"]),
        ("580.65.06", "RMForceStaticBar1=0;RmForceDisableIomapWC=0x1",
         ["static"])])
    def test_the_registry(self, one, version, registry, want):
        self.driver(one, "Open Kernel Module", version)
        self.params(one, registry)
        assert self.lacks(one) == want

    def test_multipath(self, one):
        one.write("/sys/module/nvme_core/parameters/multipath", "Y\n")
        assert self.lacks(one) == ["multipath"]

    def test_a_gpu_whose_memory_the_kernel_has_lacks_nothing(self, one):
        self.params(one, "")
        one.write("/sys/bus/pci/devices/0000:00:01.0/p2pmem/size", "1\n")
        text = run("-p", "--root", one.root).stdout
        assert (" GPU index 0 0000:00:01.0: disks can reach its memory\n"
                + address_is_missing() + framed("PLATFORM INFO:")) in text


class TestPlatform:
    def test_the_whole_report_has_the_documented_form(self, root, tmp_path):
        settings = tmp_path / "cufile.json"
        settings.write_text("{}")
        done = run("-p", "--root", root, CUFILE_ENV_PATH_JSON=settings)
        uname = os.uname()
        assert done.stdout == (
            " GDS release version: 1.19.0.0\n"
            " nvidia_fs version: 2.26 nvidia_fs minimum version: 2.12\n"
            " opencufile version: 0.1.0\n"
            f" Platform: {platform.machine()}\n"
            + framed("ENVIRONMENT:")
            + f" CUFILE_ENV_PATH_JSON : {settings}\n"
            + framed("DRIVER CONFIGURATION:")
            + (DRIVERS if int(cuda_version()) < 13030 else
               DRIVERS.replace("DmaBuf support      : Dis",
                               "DmaBuf support      : En"))
            + framed("CUFILE CONFIGURATION:") + CONFIGURATION
            + framed("GPU INFO:")
            + " GPU index 0 NVIDIA H200 bar:1 bar size (MiB):131072 supports "
              "GDS, IOMMU State: Enabled\n"
              " GPU index 1 0000:81:00.0 bar:1 bar size (MiB):256 has no "
              "driver, IOMMU State: Disabled\n"
            + framed("PEER TO PEER INFO:")
            + " GPU index 0 0000:03:00.0: disks cannot reach its memory\n"
              " GPU index 1 0000:81:00.0: disks cannot reach its memory\n"
            + LACKS["bar"] + LACKS["wc"] + address_is_missing()
            + framed("PLATFORM INFO:")
            + " IOMMU: enabled\n"
              " Nvidia Driver Info Status: Supported(Nvidia Open Driver "
              "Installed)\n"
              f" Cuda Driver Version Installed: {cuda_version()}\n"
              f" Platform: Example 9000, Arch: {uname.machine}({uname.release})\n"
              " Platform verification succeeded\n")
        assert done.stderr == ""

    def test_a_machine_without_any_of_it_succeeds_too(self, tmp_path):
        done = run("-p", "--root", tmp_path)
        assert "nvidia_fs version: 0.0 " in done.stdout
        assert " Nvidia Driver Info Status: Not Installed\n" in done.stdout
        assert " IOMMU: disabled\n" in done.stdout
        assert done.stdout.endswith(" Platform verification succeeded\n")

    def test_configuration_shows_what_is_configured(self, tmp_path):
        settings = tmp_path / "cufile.json"
        settings.write_text(json.dumps({
            "properties": {
                "allow_compat_mode": False, "rdma_dynamic_routing": True,
                "gpu_bounce_buffer_slab_config": {
                    "slab_size_kb": [1024, 8192], "slab_count": [128, 8]}}}))
        text = run("-p", CUFILE_ENV_PATH_JSON=settings).stdout
        for line in (" properties.use_compat_mode : false\n",
                     " properties.rdma_dynamic_routing : 1\n",
                     " properties.gpu_bounce_buffer_slab_size_kb : 1024 8192\n",
                     " properties.gpu_bounce_buffer_slab_count : 128 8\n",
                     " NVMe               : Unsupported\n"):
            assert line in text

    @pytest.mark.parametrize("version, module, settings, answer", [
        (13030, "Open", {}, "Enabled"),
        (13020, "Open", {}, "Disabled"),
        (13030, "Proprietary", {}, "Disabled"),
        (13030, "Open", {"OCF_ALIAS": "off"}, "Disabled"),
        (13030, "Open", {"CUFILE_FORCE_COMPAT_MODE": "1"}, "Disabled"),
    ])
    def test_dma_bufs_are_asked_of_driver_and_configuration(
            self, root, version, module, settings, answer):
        file = root / "proc/driver/nvidia/version"
        file.write_text(file.read_text().replace("Open", module))
        settings = settings | {
            "FAKECUDA_VERSION": version, "LD_LIBRARY_PATH": ":".join(
                filter(None, [FAKE_DIR, os.environ.get("LD_LIBRARY_PATH")]))}
        text = run("-p", "--root", root, **settings).stdout
        assert f" --DmaBuf support      : {answer}\n" in text
        assert f" Cuda Driver Version Installed: {version}\n" in text

    @pytest.mark.parametrize("allow, force, words", [
        (True, False, "compat"), (False, False, "Unsupported"),
        (False, True, "compat"), (True, True, "compat"),
    ])
    def test_compat_is_there_where_configuration_has_it(
            self, allow, force, words):
        text = run("-p", CUFILE_ALLOW_COMPAT_MODE=int(allow),
                   CUFILE_FORCE_COMPAT_MODE=int(force)).stdout
        assert f" NVMe               : {words}\n" in text
        assert f" WekaFS             : {words}\n" in text

    @pytest.mark.parametrize("names, up, down", [
        (["10.0.0.1"], 1, 0), (["mlx5_0"], 1, 0), (["10.0.0.2"], 0, 1),
        (["10.0.0.9"], 0, 1), (["mlx5_7"], 0, 1), (["fe80::1"], 1, 0),
        (["10.0.0.1", "10.0.0.2", "mlx5_1"], 1, 2),
    ])
    def test_rdma_devices_are_up_where_their_ports_are(self, tmp_path, names,
                                                       up, down):
        nics = tmp_path / "root/sys/class/infiniband"
        for nic, state, gids in (
                ("mlx5_0", "4: ACTIVE", ["fe80:0000:0000:0000:0000:0000:0000:0001",
                                         "0000:0000:0000:0000:0000:ffff:0a00:0001"]),
                ("mlx5_1", "1: DOWN", ["0000:0000:0000:0000:0000:ffff:0a00:0002"])):
            (nics / nic / "ports/1/gids").mkdir(parents=True)
            (nics / nic / "ports/1/state").write_text(state + "\n")
            for i, gid in enumerate(gids):
                (nics / nic / f"ports/1/gids/{i}").write_text(gid + "\n")
        settings = tmp_path / "cufile.json"
        settings.write_text(json.dumps(
            {"properties": {"rdma_dev_addr_list": names}}))
        text = run("-p", "--root", tmp_path / "root",
                   CUFILE_ENV_PATH_JSON=settings).stdout
        assert " --rdma devices        : Configured\n" in text
        assert f" --rdma_device_status  : Up: {up} Down: {down}\n" in text
        assert (" Userspace RDMA     : "
                f"{'Supported' if up else 'Unsupported'}\n") in text

    def test_a_machine_without_a_gpu_is_told_so(self, tmp_path):
        bare = tmp_path / "bare"
        (bare / "sys/bus/pci/devices").mkdir(parents=True)
        (bare / "proc/self").mkdir(parents=True)
        (bare / "proc/self/mountinfo").write_text("")
        text = run("-p", "--root", bare).stdout
        assert framed("GPU INFO:") + " none on the PCI bus\n" in text
        assert framed("PEER TO PEER INFO:") + " there is no GPU\n" in text

    def test_mistakes_of_the_file_are_told_on_stderr(self, tmp_path):
        settings = tmp_path / "cufile.json"
        settings.write_text('{"profile": {"nvtx": 3}}')
        done = run("-p", CUFILE_ENV_PATH_JSON=settings)
        assert f"{settings}:1:14: profile.nvtx: 3 ignored: expected" in done.stderr

    def test_versions_alone(self, root):
        assert run("-v", "--root", root).stdout.splitlines() == [
            " GDS release version: 1.19.0.0",
            " nvidia_fs version: 2.26 nvidia_fs minimum version: 2.12",
            " opencufile version: 0.1.0"]

    def test_a_library_that_does_not_open_fails_the_verification(self, tmp_path):
        settings = tmp_path / "cufile.json"
        settings.write_text('{"miscellaneous": {"api_check_aggressive": true}, x')
        done = run("-p", status=1, CUFILE_ENV_PATH_JSON=settings)
        assert done.stdout.endswith(" Platform verification failed\n")
        assert "CU_FILE_DRIVER_INVALID_PROPS" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="is nobody to compare with")
class TestNobody:
    """The same answers without any right."""

    def ask(self, *arguments):
        done = subprocess.run([GDSCHECK, *arguments], env=environment(),
                              capture_output=True, text=True, check=False,
                              timeout=60, user=65534, group=65534,
                              extra_groups=[], cwd="/")
        assert done.returncode == 0, done.stderr
        return done.stdout

    @pytest.fixture(autouse=True)
    def may_run(self):
        try:
            self.ask("-h")
        except PermissionError:
            pytest.skip("nobody may look into the build's folder")

    @pytest.mark.parametrize("arguments", [
        ("-p",), ("-v",), ("-t",), ("--dump-config",),
        ("--dump-config", "--json"),
    ])
    def test_machine_and_configuration_are_told_to_anybody(self, arguments):
        assert self.ask(*arguments) == run(*arguments).stdout

    def test_a_file_that_may_be_read_is_explained(self):
        ours = ask("/etc/passwd")
        theirs = json.loads(self.ask("--json", "-f", "/etc/passwd"))
        assert theirs["read"] == ours["read"]
        assert theirs["writable"] is False
        assert "/" in self.ask("-V")


class TestTopology:
    EXPECTED = """\
GPU 0 0000:03:00.0 NVIDIA H200 NUMA 0
  NVMe 0000:04:00.0 nvme0      NUMA  0  PIX
  NIC  0000:05:00.0 mlx5_0     NUMA  0  PHB
  NVMe 0000:82:00.0 nvme1      NUMA  1  SYS
GPU 1 0000:81:00.0 - NUMA 1
  NVMe 0000:04:00.0 nvme0      NUMA  0  SYS
  NIC  0000:05:00.0 mlx5_0     NUMA  0  SYS
  NVMe 0000:82:00.0 nvme1      NUMA  1  PHB
"""

    def test_distances_are_those_of_the_tree(self, root):
        assert run("-t", "--root", root).stdout == self.EXPECTED

    @pytest.mark.parametrize("beside", ["x", "root-and-a-name-that-is-longer"])
    def test_what_a_link_finds_outside_of_the_tree_is_not_the_machine_s(
            self, root, tmp_path, beside):
        """Of a tree that was copied without what its links lead to."""
        disk = root / "sys/bus/pci/devices/0000:04:00.0"
        disk.resolve().rename(tmp_path / beside)
        disk.unlink()
        disk.symlink_to(tmp_path / beside)
        expected = [line for line in self.EXPECTED.splitlines()
                    if "0000:04:00.0" not in line]
        assert run("-t", "--root", root).stdout.splitlines() == expected

    def test_it_may_go_to_a_file(self, root, tmp_path):
        out = tmp_path / "out"
        done = run("-t", "-e", "sysfs", "-o", out, "--root", root)
        assert (done.stdout, out.read_text()) == ("", self.EXPECTED)
        run("-t", "-o", tmp_path / "no/such", status=3)

    def test_engines_that_are_none_are_refused(self):
        assert "latency" in run("-t", "-e", "latency", status=2).stderr
        run("-t", "-e", "cufile", status=2)


class TestFile:
    def test_json_has_an_answer_for_every_kind_of_request(self, data):
        answer = ask(data)
        assert answer["file"] == str(data)
        assert answer["size"] == 1 << 20
        assert answer["writable"] is True
        for op in ("read", "write"):
            asked = {(row["memory"], row["aligned"], row["o_direct"])
                     for row in answer[op]}
            assert len(asked) == len(answer[op])
            opened = {True, False} if not answer["no_o_direct"] else {False}
            assert asked == {(memory, aligned, direct) for memory in KINDS
                             for aligned in (True, False) for direct in opened}
            for row in answer[op]:
                assert row["path"] == \
                    ("host" if row["memory"] == "host" else "staged")
                assert row["reason"].startswith(f"{op} {row['memory']} memory")
                assert row["path"] in row["reason"]
                assert row["direct_bytes"] + row["buffered_bytes"] == row["size"]
                assert (row["page_cache"] is None) == (not row["buffered_bytes"])
                for refused in row["refused"]:
                    assert refused["path"] != row["path"]
                    assert refused["reason"] in row["reason"]

    def test_file_system_and_mount_are_the_kernels(self, data):
        answer = ask(data)
        found = subprocess.run(
            ["findmnt", "-n", "-o", "FSTYPE,TARGET", "-T", str(data)],
            capture_output=True, text=True, check=False).stdout.split()
        # in a bare chroot it is outside the root
        assert [answer["filesystem"], answer["mount"]] == (found or [None, None])

    def test_a_device_is_followed_to_its_disk_and_driver(self, root, data):
        """The kernel's mount and device, in a tree that says what they are."""
        st = data.stat()
        made = machine.Machine.__new__(machine.Machine)
        made.root = root
        # by device, where the kernel here does not tell mounts by number
        lines = pathlib.Path("/proc/self/mountinfo").read_text()
        made.write("/proc/self/mountinfo", lines)
        real = ask(data)
        if not real["device"]:
            pytest.skip("the file's mount has no block device here")
        number = f"{os.major(st.st_dev)}:{os.minor(st.st_dev)}"
        link = root / f"sys/dev/block/{number}"
        made.link(f"/sys/dev/block/{number}",
                  "/sys/devices/pci0000:80/0000:80:03.0/0000:82:00.0/nvme/"
                  "nvme1/nvme1n1/nvme1n1p1")
        assert link.is_symlink()
        answer = json.loads(run("--json", "-f", data, "--root", root).stdout)
        assert answer["device"] == {
            "name": "nvme1n1p1", "disk": "nvme1n1",
            "major": os.major(st.st_dev), "minor": os.minor(st.st_dev),
            "bus": "NVMe", "model": "Example SSD 3.2TB", "driver": "nvme",
            "numa_node": 1}
        text = run("-f", data, "--root", root).stdout
        assert "nvme1n1p1" in text
        # and what keeps it from registered memory of the GPUs there
        peers = answer["peer_to_peer"]
        assert [(gpu["index"], gpu["reachable"]) for gpu in peers["gpus"]] == [
            (0, False), (1, False)]
        assert (1, "turn on Resizable BAR in the firmware") in [
            (lack["gpu"], lack["remedy"]) for lack in peers["missing"]]
        assert text.endswith(
            "\nwhether the disk can reach registered GPU memory:\n"
            "  GPU index 0 0000:03:00.0: disks cannot reach its memory\n"
            "  GPU index 1 0000:81:00.0: disks cannot reach its memory\n"
            + (LACKS["bar"] + LACKS["wc"] + address_is_missing()).replace(
                " missing", "  missing"))

    def test_the_answer_is_what_happens_to_a_copy(self, data, tmp_path):
        """gdscp's routes on the fake driver, and on host memory."""
        answer = ask(data)
        for options, memory in ((["-d", "0"], "device"), (["--host"], "host")):
            env = environment(FAKECUDA_STRICT=1, LD_LIBRARY_PATH=":".join(
                filter(None, [FAKE_DIR, os.environ.get("LD_LIBRARY_PATH")])))
            done = subprocess.run(
                [GDSCP, *options, data, tmp_path / "copy"], env=env,
                capture_output=True, text=True, check=True, timeout=60)
            for op in ("read", "write"):
                row, = (row for row in answer[op] if row["memory"] == memory
                        and row["aligned"] and not row["o_direct"])
                assert (f"route      {op} {memory} memory, handle"
                        in done.stdout), done.stdout
                told = [line for line in done.stdout.splitlines()
                        if f"{op} {memory} memory, handle" in line]
                assert any(f"path {row['path']}, page cache: "
                           f"{row['page_cache']}" in line for line in told)

    def test_strict_mode_has_no_path_and_tells_what_to_change(self, data):
        done = run("-f", data, status=1, CUFILE_ALLOW_COMPAT_MODE="false")
        assert "none (error 5008)" in done.stdout
        assert "set properties.allow_compat_mode to true (GPU memory)" \
            in done.stdout
        answer = ask(data, status=1, CUFILE_ALLOW_COMPAT_MODE="false")
        for row in answer["read"]:
            assert (row["path"] is None) == (row["memory"] != "host")
            if row["path"] is None:
                assert row["error"] == 5008
                assert "allow_compat_mode" in row["reason"]

    @pytest.mark.parametrize("settings, words", [
        ({"denylist": {"filesystems": ["TYPE"]}}, "5034: a denylist names"),
        ({"opencufile": {"alias": "off"}}, "5008: GPU memory has no path"),
    ])
    def test_a_file_that_strict_mode_does_not_register_says_so(
            self, data, tmp_path, settings, words):
        file = tmp_path / "cufile.json"
        text = json.dumps(settings | {
            "properties": {"allow_compat_mode": False}})
        kind = ask(data)["filesystem"]
        if "TYPE" in text and not kind:
            pytest.skip("the mount of the file is outside this root")
        file.write_text(text.replace("TYPE", kind or ""))
        done = run("-f", data, status=1, CUFILE_ENV_PATH_JSON=file)
        assert words in done.stderr
        assert "allow_compat_mode is false" in done.stderr
        assert words in ask(data, status=1, CUFILE_ENV_PATH_JSON=file)["error"]

    def test_a_buffered_file_is_told_to_use_o_direct(self, data):
        text = run("-f", data).stdout
        assert "page cache: the file was opened without O_DIRECT" in text
        assert "what would change it:" in text
        assert "open the file with O_DIRECT" in text

    def test_nothing_is_read_written_or_made(self, data):
        before = data.stat()
        run("-f", data)
        after = data.stat()
        assert (before.st_mtime_ns, before.st_size, before.st_atime_ns) == \
            (after.st_mtime_ns, after.st_size, after.st_atime_ns)
        assert [entry.name for entry in data.parent.iterdir()] == ["data"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
    def test_a_file_that_may_not_be_written_is_still_read(self, data):
        data.chmod(0o400)
        answer = ask(data)
        assert answer["writable"] is False
        assert {row["error"] for row in answer["write"]} == {9}

    @pytest.mark.parametrize("make, words", [
        (lambda path: None, "No such file"),
        (lambda path: path.symlink_to("/proc"), "no file can be made there"),
        (os.mkfifo, "neither a regular file"),
    ])
    def test_what_cannot_be_checked_is_status_3(self, tmp_path, make, words):
        make(tmp_path / "it")
        assert words in run("-f", tmp_path / "it", status=3).stderr
        answer = ask(tmp_path / "it", status=3)
        assert answer["file"] == str(tmp_path / "it")
        assert words in answer["error"]

    def test_of_a_directory_it_answers_for_a_new_file_and_leaves_none(self, data):
        answer, of_file = ask(data.parent), ask(data)
        before = sorted(os.listdir(data.parent))
        assert answer["file"] == str(data.parent)
        assert answer["writable"] is True
        for op in ("read", "write"):
            assert [(row["memory"], row["aligned"], row["path"])
                    for row in answer[op]] == \
                [(row["memory"], row["aligned"], row["path"])
                 for row in of_file[op]]
        text = run("-f", data.parent).stdout
        assert text.startswith(f"file         a new one in {data.parent}\n")
        assert sorted(os.listdir(data.parent)) == before

    @pytest.mark.skipif(os.environ["OCF_SANITIZED"] == "1",
                        reason="a sanitizer wants to be loaded first")
    def test_where_every_file_has_a_name_it_is_gone_afterwards(self, data):
        named = {"LD_PRELOAD": os.environ["OCF_NO_TMPFILE"]}
        text = run("-f", data.parent, **named).stdout
        assert text == run("-f", data.parent).stdout
        assert "a new one in" in text
        assert os.listdir(data.parent) == ["data"]

    def test_a_name_that_is_no_text_is_answered_in_valid_json(self, tmp_path):
        name = os.fsencode(tmp_path) + b"/\xff\"\n"
        with open(name, "wb"):
            pass
        done = subprocess.run([GDSCHECK, "--json", "-f", name],
                              env=environment(), capture_output=True,
                              check=True, timeout=60)
        assert json.loads(done.stdout)["read"]


MOUNTS = {
    "tmpfs": "mount -t tmpfs none {at}",
    "overlay": "mkdir {dir}/lower {dir}/upper {dir}/work && mount -t overlay "
               "none -o lowerdir={dir}/lower,upperdir={dir}/upper,"
               "workdir={dir}/work {at}",
    "ext4": "truncate -s 32M {dir}/img && mkfs.ext4 -q {dir}/img && "
            "mount -o loop {dir}/img {at}",
    "xfs": "truncate -s 400M {dir}/img && mkfs.xfs -q {dir}/img && "
           "mount -o loop {dir}/img {at}",
}


# its server's end of the connection stays open, and nobody reads it
SILENT = """
import ctypes, os, subprocess, sys
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"silent", os.fsencode(sys.argv[1]), b"fuse", 6, options):
    sys.exit(os.strerror(ctypes.get_errno()))
done = subprocess.run(sys.argv[2], shell=True, check=True, stdout=subprocess.PIPE)
os.write(1, done.stdout)
"""


class TestMounts:
    @pytest.mark.parametrize("kind", sorted(MOUNTS))
    def test_a_file_system_is_known_by_its_type(self, kind, tmp_path):
        """In a mount namespace of its own, where that is allowed."""
        at = tmp_path / "mnt point"
        at.mkdir()
        mount = MOUNTS[kind].format(at=f"'{at}'", dir=tmp_path)
        can = subprocess.run(["unshare", "-m", "sh", "-c", mount], check=False,
                             capture_output=True, text=True, timeout=60)
        if can.returncode:
            pytest.skip(f"cannot mount {kind} here: {can.stderr.strip()[:80]}")
        for left in ("img", "lower", "upper", "work"):
            subprocess.run(["rm", "-rf", str(tmp_path / left)], check=True)
        script = (f"{mount} && echo data >'{at}/file' && "
                  f"'{GDSCHECK}' --json -f '{at}/file' && "
                  f"'{GDSCHECK}' -V >'{tmp_path}/mounts'")
        done = subprocess.run(["unshare", "-m", "sh", "-c", script],
                              env=environment(), capture_output=True, text=True,
                              check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert (answer["filesystem"], answer["mount"]) == (kind, str(at))
        assert (answer["device"] or {}).get("bus") == \
            ("loop" if kind in ("ext4", "xfs") else None)
        assert {row["path"] for row in answer["read"]} == {"host", "staged"}
        line, = (line for line in
                 (tmp_path / "mounts").read_text().splitlines()
                 if line.startswith(str(at)))
        assert f" {kind} " in line and "staged" in line


    def test_a_name_makes_no_line_and_commands_no_terminal(self, tmp_path):
        at = tmp_path / "a\nb\033[2J"
        at.mkdir()
        script = (f"mount -t tmpfs 'c\nd\033[2J' '{at}' && '{GDSCHECK}' -V && "
                  f"touch '{at}/f' && cd '{at}' && '{GDSCHECK}' -f f")
        done = with_mounts(script)
        assert "\033" not in done.stdout
        for line in (f"{tmp_path}/a?b?[2J tmpfs    c?d?[2J ",
                     f"file system  tmpfs on {tmp_path}/a?b?[2J ("):
            assert f"\n{line}" in done.stdout

    def test_a_mount_that_does_not_answer_holds_nothing_up(self, tmp_path):
        """FUSE without a server; and nothing is left that holds the output."""
        at, after = tmp_path / "at", tmp_path / "after"
        at.mkdir()
        after.mkdir()
        can = subprocess.run(["unshare", "-m", sys.executable, "-c", SILENT, at,
                              "true"], check=False, capture_output=True, timeout=60)
        if can.returncode:
            pytest.skip(f"cannot mount FUSE here: {can.stderr[-80:]}")
        script = f"mount -t tmpfs after '{after}' && '{GDSCHECK}' -V"
        done = subprocess.run(["unshare", "-m", sys.executable, "-c", SILENT, at,
                               script], env=environment(), capture_output=True,
                              text=True, check=True, timeout=60)
        lines = {line.split()[0]: line for line in done.stdout.splitlines()}
        assert lines[str(at)].endswith(" did not answer within 5 s")
        assert "did not answer" not in lines[str(after)]

    def test_a_mount_under_another_is_left_out(self, tmp_path):
        at = tmp_path / "at"
        at.mkdir()
        script = (f"mount -t tmpfs under '{at}' && mount -t tmpfs over '{at}' && "
                  f"'{GDSCHECK}' -V")
        done = with_mounts(script)
        line, = (line for line in done.stdout.splitlines()
                 if line.startswith(str(at)))
        assert " over " in line


class TestConfig:
    def test_every_value_is_dumped_with_its_origin(self, tmp_path):
        settings = tmp_path / "cufile.json"
        settings.write_text('{\n"execution": {\n"max_io_threads": 9}}')
        text = run("--dump-config", CUFILE_ENV_PATH_JSON=settings,
                   CUFILE_FORCE_COMPAT_MODE="true").stdout
        lines = text.splitlines()
        assert len(lines) > 100
        assert f"execution.max_io_threads : 9 ({settings}:3)" in lines
        assert any(line.startswith("properties.force_compat_mode : true "
                                   "(environment CUFILE_FORCE_COMPAT_MODE)")
                   for line in lines)
        assert "execution.parallel_io : true (default)" in lines
        assert ("properties.per_buffer_cache_size_kb : 1024 (default) "
                "in force: 4096") in lines
        assert ("fs.weka.rdma_write_support : false (default) no effect here: "
                "this library itself moves no byte by RDMA") in lines

    def test_the_dump_as_json(self, tmp_path):
        settings = tmp_path / "cufile.json"
        settings.write_text('{"oops": 1,\n"denylist": {"mounts": ["/a b"]}}')
        answer = json.loads(run("--dump-config", "--json",
                                CUFILE_ENV_PATH_JSON=settings).stdout)
        rows = answer["configuration"]
        assert rows["denylist.mounts"]["value"] == ["/a b"]
        assert rows["denylist.mounts"]["origin"] == f"{settings}:2"
        assert rows["execution.max_io_threads"]["value"] == 4
        assert rows["properties.per_buffer_cache_size_kb"]["in_force"] == 4096
        assert rows["properties.io_batchsize"]["in_force"] is None
        assert rows["sparse.p2p_compat_enable"]["no_effect"]
        assert rows["properties.allow_compat_mode"]["no_effect"] is None
        assert answer["problems"] == [
            f"{settings}:1:2: oops: unknown key, ignored"]


class TestManual:
    """cufile-configuration(7) has a place for every row, and the right one."""

    PAGE = pathlib.Path(__file__).resolve().parents[2].joinpath(
        "man/man7/cufile-configuration.7").read_text()

    def keys(self, start, end):
        part = self.PAGE.partition(f".Ss {start}\n")[2].partition(end)[0]
        found = set()
        for line in part.splitlines():
            if line.startswith((".It Cm ", ".It Ev ")):
                names = line[7:].partition(" No ")[0]
                found |= {name for name in names.split() if name != ","}
        return found

    def test_rows_with_and_without_an_effect_stand_where_they_belong(self):
        rows = json.loads(run("--dump-config", "--json").stdout)["configuration"]
        works = {key for key, row in rows.items() if not row["no_effect"]}
        assert self.keys("Keys that have an effect", ".Ss ") == works
        assert self.keys("Keys without an effect", ".Sh ") == \
            set(rows) - works

    def test_each_reason_stands_above_its_keys(self):
        rows = json.loads(run("--dump-config", "--json").stdout)["configuration"]
        part = self.PAGE.partition(".Ss Keys without an effect\n")[2]
        reason = before = ""
        for line in part.partition(".Sh ")[0].splitlines():
            if before == ".Pp" and line.endswith(":"):
                reason = line[:-1].lower()
            before = line
            if line.startswith((".It Cm ", ".It Ev ")):
                key = line[7:].partition(" No ")[0]
                assert rows[key]["no_effect"].lower() == reason, key


class TestUsage:
    @pytest.mark.parametrize("arguments", [
        (), ("-x",), ("-f",), ("stray",), ("--json",), ("-p", "--json"),
        ("--root", "/nonexistent", "-p"), ("-e", "sysfs"),
        ("-f", "/", "-f", "/"), ("-p", "-o", "/nonexistent"),
    ])
    def test_what_cannot_be_meant_is_status_2(self, arguments):
        assert "try gdscheck --help" in run(*arguments, status=2).stderr

    def test_help_names_every_option(self):
        text = run("-h").stdout
        for option in ("-p", "-f FILE", "-v", "-V", "-t", "-e ENGINE",
                       "-o FILE", "--json", "--dump-config", "--root DIR"):
            assert option in text
        assert run("--help").stdout == text

    # a line at a time, nothing is left for the last flush to fail with
    @pytest.mark.parametrize("prefix", [(), ("stdbuf", "-oL")])
    @pytest.mark.parametrize("arguments", [
        ("-p",), ("-v",), ("--dump-config",), ("-h",)])
    def test_an_answer_that_cannot_be_written_is_status_3(self, arguments,
                                                          prefix):
        if prefix and os.environ["OCF_SANITIZED"] == "1":
            pytest.skip("a sanitizer's library must be the first")
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([*prefix, GDSCHECK, *arguments],
                                  env=environment(), stdout=full, text=True,
                                  stderr=subprocess.PIPE, check=False,
                                  timeout=60)
        assert done.returncode == 3
        assert "write the result: " in done.stderr
