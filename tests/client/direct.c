// SPDX-License-Identifier: Apache-2.0
/*
 * direct - large O_DIRECT requests of a whole process, on any file.
 *
 *   direct FILE [ERRNO]
 *
 * Writes the file, or the block device, through the library and reads it
 * back, with odd ends too. With ERRNO the kernel answers that to
 * io_uring_setup, as containers have it. Status 77: no O_DIRECT there.
 */
#include "client.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE (8u << 20)
#define BLOCK 4096

static void refuse_rings(int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K,
			 SECCOMP_RET_ERRNO |
				 ((unsigned)err & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	CHECK(syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno == err);
}

static void round_trip(CUfileHandle_t fh, const char *path, char *out, char *in)
{
	int plain;

	CHECK(cuFileWrite(fh, out, SIZE, 0, 0) == SIZE);
	CHECK(cuFileRead(fh, in, SIZE, 0, 0) == SIZE);
	CHECK(!memcmp(in, out, SIZE));
	memset(in, 0, SIZE);
	CHECK(cuFileRead(fh, in, SIZE - 1000, 333, 333) == SIZE - 1000);
	CHECK(!memcmp(in + 333, out + 333, SIZE - 1000));
	CHECK(in[332] == 0 && in[SIZE - 1000 + 333] == 0);
	plain = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(plain >= 0);
	CHECK(pread(plain, in, SIZE, 0) == SIZE);
	CHECK(!memcmp(in, out, SIZE));
	close(plain);
}

int main(int argc, char **argv)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	char *out = aligned_alloc(BLOCK, SIZE),
	     *in = aligned_alloc(BLOCK, SIZE);
	CUfileHandle_t fh;
	int fd;

	CHECK(argc >= 2 && out && in);
	alarm(300);
	for (size_t i = 0; i < SIZE; i++)
		out[i] = (char)(i * 7 + i / 251 + 1);
	memset(in, 0, SIZE);
	fd = open(argv[1], O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EINVAL)
		return 77;
	CHECK(fd >= 0);
	if (argc > 2)
		refuse_rings(atoi(argv[2]));
	OK(cuFileDriverOpen());
	descr.handle.fd = fd;
	OK(cuFileHandleRegister(&fh, &descr));
	round_trip(fh, argv[1], out, in);
	cuFileHandleDeregister(fh);
	OK(cuFileDriverClose_v2());
	close(fd);
	free(out);
	free(in);
	say_done();
	return 0;
}
