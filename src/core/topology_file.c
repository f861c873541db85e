// SPDX-License-Identifier: Apache-2.0
/*
 * topology_file - writes GPUs, and the devices near them, to a file.
 *
 * A comment, and then JSON: for each GPU its disks and NICs, nearest first,
 * with the number that ranks them; "null" if there is no GPU. The text is made
 * before the file is opened, so a failure leaves an old file as it is.
 */
#include "core/topology_file.h"

#include <cufile.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>
#include "core/log.h"
#include "core/pci.h"
#include "seam/os.h"

#define COMMENT "// PCIe topology file for cuFile, written by opencufile\n"

/* A network may be called any bytes; as JSON they are what can be shown. */
#define WRITE_FLAGS \
	(YYJSON_WRITE_PRETTY | YYJSON_WRITE_ALLOW_INVALID_UNICODE | \
	 YYJSON_WRITE_ESCAPE_UNICODE)

static const char *const kinds[] = {
	[CF_PCI_GPU] = "gpu",
	[CF_PCI_NVME] = "nvme",
	[CF_PCI_STORAGE] = "storage",
	[CF_PCI_NETWORK] = "network",
};

struct peer {
	const struct cf_pci *item;
	unsigned order;
};

static int by_order(const void *a, const void *b)
{
	const struct peer *p = a, *q = b;

	if (p->order != q->order)
		return p->order < q->order ? -1 : 1;
	return strcmp(p->item->address, q->item->address);
}

/* Adding fails only without memory, and then so does the writing. */
static yyjson_mut_val *item_value(yyjson_mut_doc *doc,
				  const struct cf_pci *item)
{
	yyjson_mut_val *value = yyjson_mut_obj(doc);

	yyjson_mut_obj_add_str(doc, value, "pci", item->address);
	yyjson_mut_obj_add_int(doc, value, "numa_node", item->node);
	return value;
}

static yyjson_mut_val *peer_value(yyjson_mut_doc *doc, const struct cf_pci *gpu,
				  const struct peer *peer)
{
	yyjson_mut_val *value = item_value(doc, peer->item);
	char order[16];

	snprintf(order, sizeof(order), "%#x", peer->order);
	yyjson_mut_obj_add_str(doc, value, "kind", kinds[peer->item->kind]);
	yyjson_mut_obj_add_str(doc, value, "name", peer->item->name);
	yyjson_mut_obj_add_str(doc, value, "distance",
			       cf_pci_distance(gpu, peer->item));
	yyjson_mut_obj_add_strcpy(doc, value, "order", order);
	return value;
}

static yyjson_mut_val *gpu_value(yyjson_mut_doc *doc, const struct cf_pci *gpu,
				 const struct cf_pci *list, unsigned nr,
				 struct peer *peers)
{
	yyjson_mut_val *value = item_value(doc, gpu);
	yyjson_mut_val *array = yyjson_mut_arr(doc);
	unsigned nr_peers = 0;

	for (unsigned i = 0; i < nr; i++)
		if (list[i].kind != CF_PCI_GPU)
			peers[nr_peers++] =
				(struct peer){ &list[i],
					       cf_pci_order(gpu, &list[i]) };
	qsort(peers, nr_peers, sizeof(*peers), by_order);
	for (unsigned i = 0; i < nr_peers; i++)
		yyjson_mut_arr_append(array, peer_value(doc, gpu, &peers[i]));
	yyjson_mut_obj_add_uint(doc, value, "bar_kib", gpu->bar_kib);
	yyjson_mut_obj_add_val(doc, value, "peers", array);
	return value;
}

/* {"gpus": [...]}, or null. */
static yyjson_mut_val *root_value(yyjson_mut_doc *doc,
				  const struct cf_pci *list, unsigned nr,
				  struct peer *peers)
{
	yyjson_mut_val *array = yyjson_mut_arr(doc);
	yyjson_mut_val *root = yyjson_mut_obj(doc);

	for (unsigned i = 0; i < nr; i++)
		if (list[i].kind == CF_PCI_GPU)
			yyjson_mut_arr_append(
				array,
				gpu_value(doc, &list[i], list, nr, peers));
	if (array && !yyjson_mut_arr_size(array))
		return yyjson_mut_null(doc);
	yyjson_mut_obj_add_val(doc, root, "gpus", array);
	return root;
}

/* The JSON; the caller frees it. NULL: no memory. */
static char *json_of(const struct cf_pci *list, unsigned nr, size_t *size)
{
	struct peer *peers = calloc(nr + 1, sizeof(*peers));
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	char *text = NULL;

	if (peers && doc) {
		yyjson_mut_doc_set_root(doc, root_value(doc, list, nr, peers));
		text = yyjson_mut_write(doc, WRITE_FLAGS, size);
	}
	yyjson_mut_doc_free(doc);
	free(peers);
	return text;
}

static int make_text(char **text, size_t *size)
{
	struct cf_pci *list;
	unsigned nr;
	int err = cf_pci_list(&list, &nr);

	if (err)
		return err;
	*text = json_of(list, nr, size);
	free(list);
	return *text ? 0 : -ENOMEM;
}

static int write_text(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t n = cf_os->write(fd, text, size);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n ? (int)n : -EIO;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

/* O_NONBLOCK: the open of a pipe without a reader would wait. */
static int make_file(const char *path, const char *text, size_t size)
{
	int fd = cf_os->open(path,
			     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC |
				     O_NONBLOCK | O_NOCTTY,
			     0644);
	int err, close_err;

	if (fd < 0) {
		cf_log(CF_LOG_ERROR, "topology file %s: %s", path,
		       strerror(-fd));
		return -CU_FILE_INVALID_VALUE;
	}
	err = write_text(fd, COMMENT, sizeof(COMMENT) - 1);
	if (!err)
		err = write_text(fd, text, size);
	if (!err)
		err = write_text(fd, "\n", 1);
	/* the close may report that the disk is full */
	close_err = cf_os->close(fd);
	if (!err)
		err = close_err;
	if (err)
		cf_log(CF_LOG_ERROR, "topology file %s: write %zu bytes: %s",
		       path, size, strerror(-err));
	return err;
}

int cf_topology_write(const char *path)
{
	size_t size;
	char *text;
	int err = make_text(&text, &size);

	if (err) {
		cf_log(CF_LOG_ERROR, "topology file %s: PCI devices: %s", path,
		       strerror(-err));
		return err;
	}
	err = make_file(path, text, size);
	free(text);
	return err;
}
