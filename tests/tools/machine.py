# SPDX-License-Identifier: Apache-2.0
"""A machine made of files: /proc and /sys for gdscheck --root."""
import os


class Machine:
    """Two GPUs, one of them without a driver, two disks and a NIC."""

    def __init__(self, root):
        self.root = root
        (root / "sys/bus/pci/devices").mkdir(parents=True)
        (root / "sys/dev/block").mkdir(parents=True)
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/mountinfo").write_text("")

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def link(self, path, target):
        """A link as sysfs makes them: relative."""
        link = self.root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        (self.root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)
        os.symlink(os.path.relpath(self.root / target.lstrip("/"), link.parent),
                   link)

    def pci(self, path, pci_class, vendor=0x8086, node=0, resource=""):
        bdf = path.rsplit("/", 1)[1]
        self.write(f"{path}/vendor", f"{vendor:#06x}\n")
        self.write(f"{path}/class", f"{pci_class:#08x}\n")
        self.write(f"{path}/config", "")
        self.write(f"{path}/numa_node", f"{node}\n")
        self.write(f"{path}/resource", resource)
        self.link(f"/sys/bus/pci/devices/{bdf}", path)
        return bdf

    def gpu(self, path, name=None, bar_mib=65536, node=0, iommu=False):
        region = (f"0x0000000090000000 0x0000000090ffffff 0x0000000000040200\n"
                  f"0x0000201000000000 {0x201000000000 + (bar_mib << 20) - 1:#018x}"
                  f" 0x000000000014220c\n"
                  f"0x0000000000000000 0x0000000000000000 0x0000000000000000\n")
        bdf = self.pci(path, 0x030200, 0x10de, node, region)
        if iommu:
            self.link(f"{path}/iommu_group", "/sys/kernel/iommu_groups/7")
        if name:
            self.write(f"/proc/driver/nvidia/gpus/{bdf}/information",
                       f"Model: \t\t {name}\nIRQ:   \t\t 42\n")

    def nvme(self, path, name, number, node=0):
        """A disk and its first partition."""
        self.pci(path, 0x010802, 0x144d, node)
        disk = f"{path}/nvme/{name[:5]}/{name}"
        self.write(f"{path}/nvme/{name[:5]}/transport", "pcie\n")
        self.write(f"{path}/nvme/{name[:5]}/model", "Example SSD 3.2TB   \n")
        self.link(f"{path}/driver", "/sys/bus/pci/drivers/nvme")
        self.write(f"{disk}/size", "1\n")
        self.write(f"{disk}/{name}p1/partition", "1\n")
        self.link(f"{disk}/device", f"{path}/nvme/{name[:5]}")
        self.link(f"/sys/dev/block/259:{number}", disk)
        self.link(f"/sys/dev/block/259:{number + 1}", f"{disk}/{name}p1")


def example(root):
    machine = Machine(root)
    switch = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
    machine.gpu(f"{switch}/0000:02:00.0/0000:03:00.0", "NVIDIA H200",
                131072, iommu=True)
    machine.gpu("/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0", None,
                256, node=1)
    machine.nvme(f"{switch}/0000:02:01.0/0000:04:00.0", "nvme0n1", 0)
    machine.nvme("/sys/devices/pci0000:80/0000:80:03.0/0000:82:00.0",
                 "nvme1n1", 4, node=1)
    nic = "/sys/devices/pci0000:00/0000:00:05.0/0000:05:00.0"
    machine.pci(nic, 0x020000, 0x15b3)
    machine.write(f"{nic}/infiniband/mlx5_0/node_type", "1\n")
    machine.write("/proc/driver/nvidia/version",
                  "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
                  "580.65.06  Release Build\nGCC version: 12\n")
    machine.write("/proc/driver/nvidia-fs/version", "version: 2.26\n")
    machine.write("/sys/class/dmi/id/product_name", "Example 9000\n")
    return machine
