# SPDX-License-Identifier: Apache-2.0
"""torch.cuda.gds on this library: storages to a file and back, in threads.

PyTorch never opens or closes the driver, registers interior pointers of its
allocator's blocks, and opens files with O_DIRECT. Started with the library
in LD_PRELOAD and a working directory as the argument; 77 skips.
"""
import os
import sys
import threading

try:
    import torch
except ImportError:
    print("torch is not installed")
    sys.exit(77)
if not torch.cuda.is_available() or not hasattr(torch.cuda, "gds"):
    print("torch has no GPU, or no cuFile")
    sys.exit(77)

from torch.cuda import gds  # noqa: E402


def libraries():
    with open("/proc/self/maps", encoding="ascii") as maps:
        return {line.split()[-1] for line in maps if "libcufile.so" in line}


def round_trip(path, nbytes, registered):
    torch.cuda.set_device(0)
    source = torch.randint(0, 256, (nbytes,), dtype=torch.uint8, device="cuda")
    head = torch.randint(0, 256, (4096,), dtype=torch.uint8, device="cuda")
    back = torch.zeros(nbytes, dtype=torch.uint8, device="cuda")
    if registered:
        gds.gds_register_buffer(source.untyped_storage())
        gds.gds_register_buffer(back.untyped_storage())
    file = gds.GdsFile(path, os.O_CREAT | os.O_RDWR)
    file.save_storage(head.untyped_storage(), offset=0)
    file.save_storage(source.untyped_storage(), offset=4096)
    file.load_storage(back.untyped_storage(), offset=4096)
    assert torch.equal(source, back), (path, nbytes, registered)
    with open(path, "rb") as plain:
        assert plain.read(4096) == bytes(head.cpu().numpy()), path
    if registered:
        gds.gds_deregister_buffer(source.untyped_storage())
        gds.gds_deregister_buffer(back.untyped_storage())


def main(folder):
    mine = os.path.realpath(os.environ["OCF_LIB"])
    used = {os.path.realpath(path) for path in libraries()}
    assert mine in used, used
    for nbytes in (512, 4096, 8192, 1 << 20, 64 << 20):
        for registered in (False, True):
            round_trip(f"{folder}/torch", nbytes, registered)
    round_trip(f"{folder}/torch", 1 << 30, False)
    errors = []

    def work(i):
        try:
            for _ in range(5):
                round_trip(f"{folder}/torch{i}", (3 << 20) + 512 * i, i % 2 == 0)
        except Exception as error:  # pylint: disable=broad-except
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    print("torch.cuda.gds: data equal")


main(sys.argv[1])
