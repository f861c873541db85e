// SPDX-License-Identifier: Apache-2.0
/* fake_rm_files - which descriptors are the driver's, and what is open. */
#include "fake_rm_files.h"

#include <stdlib.h>
#include <string.h>
#include "harness.h"

#define MAX_FDS 256

unsigned fake_rm_nr_fds, fake_rm_nr_clients;
unsigned fake_rm_nr_pages, fake_rm_nr_exports;
static struct {
	int fd;
	struct fake_rm_file *file;
} fds[MAX_FDS];

static unsigned place_of(int fd)
{
	unsigned i = 0;

	while (i < fake_rm_nr_fds && fds[i].fd != fd)
		i++;
	return i;
}

struct fake_rm_file *fake_rm_file(int fd)
{
	unsigned i = place_of(fd);

	return i < fake_rm_nr_fds ? fds[i].file : NULL;
}

/* In front: one of that number that was not closed by way of the table is not
 * found again, and stays counted. */
void fake_rm_file_alias(int fd, struct fake_rm_file *file)
{
	assert_in_range(fake_rm_nr_fds, 0, MAX_FDS - 1);
	memmove(fds + 1, fds, fake_rm_nr_fds * sizeof(*fds));
	fds[0].fd = fd;
	fds[0].file = file;
	fake_rm_nr_fds++;
	file->refs++;
}

void fake_rm_file_add(int fd, enum fake_rm_kind kind)
{
	struct fake_rm_file *file = calloc(1, sizeof(*file));

	assert_non_null(file);
	file->kind = kind;
	fake_rm_file_alias(fd, file);
}

void fake_rm_file_put(struct fake_rm_file *file)
{
	if (!file || --file->refs)
		return;
	fake_rm_nr_clients -= file->client != 0;
	fake_rm_nr_exports -= file->exports;
	for (int i = 0; i < FAKE_RM_MAX_PAGES; i++)
		fake_rm_nr_pages -= file->pages[i] != 0;
	fake_rm_file_put(file->ctl);
	free(file);
}

void fake_rm_file_forget(int fd)
{
	unsigned i = place_of(fd);

	if (i == fake_rm_nr_fds)
		return;
	fake_rm_file_put(fds[i].file);
	fake_rm_nr_fds--;
	memmove(fds + i, fds + i + 1, (fake_rm_nr_fds - i) * sizeof(*fds));
}
