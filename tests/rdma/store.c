// SPDX-License-Identifier: Apache-2.0
/* store - see store.h. */
#include "store.h"

#include <arpa/inet.h>
#include <errno.h>
#include <opencufile.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------- its callbacks */

static int hosts_of(const void *handle, sockaddr_t **hosts)
{
	struct store *s = (struct store *)(uintptr_t)handle;
	int nr = 0;

	s->hosts_asked++;
	for (; nr < 4 && s->hosts[nr]; nr++) {
		s->list[nr] = (struct sockaddr_in){ .sin_family = AF_INET };
		assert_int_equal(
			inet_pton(AF_INET, s->hosts[nr], &s->list[nr].sin_addr),
			1);
	}
	*hosts = nr ? (sockaddr_t *)(void *)s->list : NULL;
	return s->nr_hosts < 0 ? s->nr_hosts : nr;
}

static int priority_of(const void *handle, char *buf, size_t size, off_t off,
		       const sockaddr_t *host)
{
	struct store *s = (struct store *)(uintptr_t)handle;
	const struct sockaddr_in *in = (const void *)host;
	unsigned nr = (ntohl(in->sin_addr.s_addr) & 0xff) - 1;

	s->priorities_asked++;
	return in->sin_family == AF_INET && nr < 4 && s->priorities[nr] ?
		       s->priorities[nr] :
		       -1;
}

static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;

/* Bytes that this call moves, or an error. */
static ssize_t portion_of(struct store *s, size_t size, off_t off)
{
	size_t at = (size_t)off;

	if (s->fail)
		return s->fail;
	if (at >= s->size)
		return 0;
	if (size > s->portion)
		size = s->portion;
	return (ssize_t)(size < s->size - at ? size : s->size - at);
}

static ssize_t by_rdma(struct store *s, uintptr_t buf, size_t size, off_t off,
		       const cufileRDMAInfo_t *info, bool read)
{
	ssize_t n = portion_of(s, size, off);
	struct fake_desc desc;

	s->by_rdma++;
	if (s->host_only)
		return -ENOTSUP;
	if (n <= 0 || n > (ssize_t)size)
		return n;
	if (info->version != 1 ||
	    !fake_server_moves(info->desc_str, info->desc_len, read,
			       s->bytes + off, (size_t)n, &desc) ||
	    desc.addr != buf || desc.size != size) {
		s->bad++;
		return -EIO;
	}
	s->used[desc.device[5] - '0']++;
	pthread_mutex_lock(&last_lock);
	s->last = desc;
	pthread_mutex_unlock(&last_lock);
	if (s->meanwhile)
		s->meanwhile(s);
	return n;
}

static ssize_t store_read(const void *handle, char *buf, size_t size, off_t off,
			  const cufileRDMAInfo_t *info)
{
	struct store *s = (struct store *)(uintptr_t)handle;
	ssize_t n;

	if (info)
		return by_rdma(s, (uintptr_t)buf, size, off, info, true);
	s->by_host++;
	n = portion_of(s, size, off);
	if (n > 0)
		memcpy(buf, s->bytes + off, (size_t)n);
	return n;
}

static ssize_t store_write(const void *handle, const char *buf, size_t size,
			   off_t off, const cufileRDMAInfo_t *info)
{
	struct store *s = (struct store *)(uintptr_t)handle;
	ssize_t n;

	if (info)
		return by_rdma(s, (uintptr_t)buf, size, off, info, false);
	s->by_host++;
	n = portion_of(s, size, off);
	if (n > 0)
		memcpy(s->bytes + off, buf, (size_t)n);
	return n;
}

static const CUfileFSOps_t ops = { .getRDMADeviceList = hosts_of,
				   .getRDMADevicePriority = priority_of,
				   .read = store_read,
				   .write = store_write };

/* ---------------------------------------------------------- begin and end */

void store_begin(struct store *s, size_t size)
{
	memset(s, 0, sizeof(*s));
	s->bytes = th_bytes(size);
	s->size = size;
	s->portion = SIZE_MAX;
}

void store_end(struct store *s)
{
	assert_int_equal(s->bad, 0);
	free(s->bytes);
}

int store_register(struct store *s, CUfileHandle_t *fh)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				.handle.handle = s,
				.fs_ops = &ops };

	return (int)cuFileHandleRegister(fh, &descr).err;
}

CUfileHandle_t store_handle(struct store *s)
{
	CUfileHandle_t fh = NULL;

	assert_int_equal(store_register(s, &fh), 0);
	return fh;
}

static char *own_config; /* what the environment named before */
static char config[128];

void store_open(const char *nics, const char *more)
{
	FILE *out;

	own_config = strdup(getenv("CUFILE_ENV_PATH_JSON"));
	snprintf(config, sizeof(config), "%s/rdma.json", th_shm_dir());
	out = fopen(config, "we");
	assert_non_null(out);
	fprintf(out, "{\"properties\": {\"rdma_dev_addr_list\": [%s]%s}}\n",
		nics, more);
	assert_int_equal(fclose(out), 0);
	setenv("CUFILE_ENV_PATH_JSON", config, 1);
	th_open();
}

void store_close(void)
{
	th_close();
	if (!own_config)
		return;
	setenv("CUFILE_ENV_PATH_JSON", own_config, 1);
	free(own_config);
	own_config = NULL;
	unlink(config);
}

int store_setup(void **state)
{
	(void)state;
	(void)th_need_fake();
	fake_verbs_begin();
	return 0;
}

int store_teardown(void **state)
{
	(void)state;
	store_close();
	fake_verbs_end();
	return 0;
}

void store_mem(struct th_mem *mem, size_t size, int flags)
{
	th_mem_alloc(mem, TH_DEVICE, size);
	assert_int_equal(cuFileBufRegister(mem->ptr, size, flags).err, 0);
}

void rig_begin(struct rig *r, const char *nics, const char *more)
{
	store_open(nics, more);
	store_mem(&r->mem, r->s.size + 4096, 0);
	r->fh = store_handle(&r->s);
}

void rig_end(struct rig *r)
{
	cuFileHandleDeregister(r->fh);
	assert_int_equal(cuFileBufDeregister(r->mem.ptr).err, 0);
	store_close();
	th_mem_free(&r->mem);
	store_end(&r->s);
	assert_int_equal(fake_verbs_live(), 0);
}

/* --------------------------------------------------------------- looking */

const char *store_path(CUfileHandle_t fh, const void *buf, size_t size,
		       const char **why_not)
{
	static ocf_explain_t e;

	e = (ocf_explain_t){ .struct_size = sizeof(e) };
	assert_int_equal(
		ocf_explain_read(fh, (void *)(uintptr_t)buf, size, 0, 0, &e)
			.err,
		0);
	*why_not = NULL;
	for (unsigned i = 0; i < e.nr_refusals; i++)
		if (!strcmp(e.refusals[i].path, "rdma"))
			*why_not = e.refusals[i].reason;
	return e.path ? e.path : "none";
}

void store_check_read(struct store *s, CUfileHandle_t fh,
		      const struct th_mem *mem, size_t size, off_t off,
		      size_t at, ssize_t want)
{
	unsigned char *got = malloc(mem->size), *expect = th_bytes(mem->size);

	assert_non_null(got);
	th_mem_put(mem, 0, expect, mem->size);
	assert_int_equal(cuFileRead(fh, mem->ptr, size, off, (off_t)at), want);
	memcpy(expect + at, s->bytes + off, (size_t)want);
	th_mem_get(mem, 0, got, mem->size);
	th_equal("memory after a read", got, expect, mem->size);
	free(got);
	free(expect);
}

void store_check_write(struct store *s, CUfileHandle_t fh,
		       const struct th_mem *mem, size_t size, off_t off,
		       size_t at, ssize_t want)
{
	unsigned char *mine = th_bytes(mem->size), *expect = malloc(s->size);

	assert_non_null(expect);
	memcpy(expect, s->bytes, s->size);
	memcpy(expect + off, mine + at, (size_t)want);
	th_mem_put(mem, 0, mine, mem->size);
	assert_int_equal(cuFileWrite(fh, mem->ptr, size, off, (off_t)at), want);
	th_equal("store after a write", s->bytes, expect, s->size);
	free(mine);
	free(expect);
}
