# SPDX-License-Identifier: Apache-2.0
"""cuda-python's cuFile bindings on this library: driver, parameters, IO.

Started with the library in LD_PRELOAD and a working directory as the
argument; 77 skips.
"""
import ctypes
import os
import sys

try:
    from cuda.bindings import cufile, driver
except ImportError:
    print("cuda-python is not installed")
    sys.exit(77)


def ok(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) > 1 else None


def descriptor(fd):
    descr = cufile.Descr()
    descr.type = cufile.FileHandleType.OPAQUE_FD
    descr.handle.fd = fd
    descr.fs_ops = 0
    return descr


def io(folder, size, flags):
    path = f"{folder}/bindings"
    data = os.urandom(size)
    fd = os.open(path, os.O_CREAT | os.O_RDWR | flags, 0o600)
    descr = descriptor(fd)
    handle = cufile.handle_register(descr.ptr)
    out, back = ok(driver.cuMemAlloc(size)), ok(driver.cuMemAlloc(size))
    cufile.buf_register(int(out), size, 0)
    cufile.buf_register(int(back), size, 0)
    ok(driver.cuMemcpyHtoD(out, data, size))
    assert cufile.write(handle, int(out), size, 0, 0) == size
    assert cufile.read(handle, int(back), size, 0, 0) == size
    got = ctypes.create_string_buffer(size)
    ok(driver.cuMemcpyDtoH(ctypes.addressof(got), back, size))
    assert got.raw == data
    with open(path, "rb") as plain:
        assert plain.read() == data
    cufile.buf_deregister(int(out))
    cufile.buf_deregister(int(back))
    cufile.handle_deregister(handle)
    os.close(fd)
    os.unlink(path)
    ok(driver.cuMemFree(out))
    ok(driver.cuMemFree(back))


def parameters():
    sizes = cufile.SizeTConfigParameter
    for name, value in (("POLLTHRESHOLD_SIZE_KB", 64),
                        ("PROPERTIES_MAX_DIRECT_IO_SIZE_KB", 1024),
                        ("PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB", 512),
                        ("PROPERTIES_PER_BUFFER_CACHE_SIZE_KB", 128),
                        ("PROPERTIES_IO_BATCHSIZE", 16),
                        ("EXECUTION_MAX_IO_THREADS", 8)):
        param = getattr(sizes, name)
        before = cufile.get_parameter_size_t(param)
        cufile.set_parameter_size_t(param, value)
        assert cufile.get_parameter_size_t(param) == value, name
        cufile.set_parameter_size_t(param, before)


def statistics(folder):
    cufile.set_stats_level(1)
    cufile.stats_start()
    io(folder, 4096, 0)
    stats = cufile.StatsLevel1()
    cufile.get_stats_l1(stats.ptr)
    assert int(stats.read_ops.ok) == 1 and int(stats.write_ops.ok) == 1
    assert int(stats.read_bytes) == 4096 and int(stats.write_bytes) == 4096
    cufile.stats_stop()


def main(folder):
    ok(driver.cuInit(0))
    device = ok(driver.cuDeviceGet(0))
    context = ok(driver.cuDevicePrimaryCtxRetain(device))
    ok(driver.cuCtxSetCurrent(context))
    assert cufile.get_version() == 1190
    cufile.driver_open()
    cufile.driver_close()
    parameters()
    cufile.driver_open()
    for size in (4096, 65536, 1 << 20, (5 << 20) + 4096):
        io(folder, size, os.O_DIRECT)
        io(folder, size + 13, 0)
    statistics(folder)
    assert cufile.get_bar_size_in_kb(0) >= 1
    cufile.driver_close()
    print("cuda.bindings.cufile: data equal")


main(sys.argv[1])
