// SPDX-License-Identifier: Apache-2.0
/* soak_memory - asks malloc and the kernel where the memory is. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include "soak.h"

#define GUARD (64 << 10) /* of a stack, at most */

static const char *const kind_names[SOAK_NR_KINDS] = {
	[SOAK_HEAP] = "heap",	   [SOAK_STACK] = "stacks",
	[SOAK_ANON] = "anonymous", [SOAK_NVIDIA] = "/dev/nvidia*",
	[SOAK_FILE] = "files",
};

#if TH_ASAN
size_t __sanitizer_get_current_allocated_bytes(void);

long soak_malloced_kib(void)
{
	return (long)(__sanitizer_get_current_allocated_bytes() >> 10);
}
#else
/* struct mallinfo2, from glibc 2.33 on; an older libc has no such call. */
struct info {
	size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks,
		uordblks, fordblks, keepcost;
};

long soak_malloced_kib(void)
{
	struct info (*ask)(void);
	struct info info;

	*(void **)&ask = dlsym(RTLD_DEFAULT, "mallinfo2");
	if (!ask)
		return 0;
	info = ask();
	return (long)((info.uordblks + info.hblkhd) >> 10);
}
#endif

/* A line that begins a mapping: "FROM-TO PERM OFFSET DEVICE INODE [NAME]". */
struct mapping {
	unsigned long from, to;
	char perm[8], name[128];
};

static bool begins_mapping(const char *line, struct mapping *map)
{
	map->name[0] = 0;
	return sscanf(line, "%lx-%lx %7s %*x %*s %*u %127s", &map->from,
		      &map->to, map->perm, map->name) >= 3;
}

/* The default size. */
static unsigned long stack_size(void)
{
	pthread_attr_t attr;
	size_t size;

	pthread_attr_init(&attr);
	pthread_attr_getstacksize(&attr, &size);
	pthread_attr_destroy(&attr);
	return size;
}

/*
 * A stack lies right above a guard and is no longer than the default. A block
 * that is mapped right behind a stack is one mapping with it until the thread
 * ends; that counts as what the block is.
 */
static bool is_stack(const struct mapping *map, const struct mapping *below)
{
	return !map->name[0] && below->to == map->from &&
	       below->perm[0] == '-' && below->to - below->from <= GUARD &&
	       map->to - map->from <= stack_size();
}

static enum soak_kind kind_of(const struct mapping *map,
			      const struct mapping *below)
{
	if (!strcmp(map->name, "[heap]"))
		return SOAK_HEAP;
	if (!strncmp(map->name, "/dev/nvidia", 11))
		return SOAK_NVIDIA;
	if (!strcmp(map->name, "[stack]") || is_stack(map, below))
		return SOAK_STACK;
	return map->name[0] ? SOAK_FILE : SOAK_ANON;
}

static void ask_kernel(struct soak_memory *m)
{
	struct mapping map = { 0 }, below;
	FILE *f = fopen("/proc/self/smaps", "r");
	enum soak_kind kind = SOAK_FILE;
	char line[512];
	long kib;

	while (f && fgets(line, sizeof(line), f)) {
		below = map;
		if (begins_mapping(line, &map)) {
			kind = kind_of(&map, &below);
			m->kinds[kind].nr++;
		} else {
			map = below;
			if (sscanf(line, "Rss: %ld", &kib) == 1)
				m->kinds[kind].kib += kib;
		}
	}
	if (f)
		fclose(f);
}

void soak_memory_look(struct soak_memory *m)
{
	*m = (struct soak_memory){ .seen = true,
				   .malloced_kib = soak_malloced_kib() };
	ask_kernel(m);
}

void soak_memory_print(const struct soak_memory *m)
{
	long kib = 0;

	for (unsigned i = 0; i < SOAK_NR_KINDS; i++)
		kib += m->kinds[i].kib;
	printf("resident %ld KiB, malloc has %ld KiB in use", kib,
	       m->malloced_kib);
	for (unsigned i = 0; i < SOAK_NR_KINDS; i++)
		printf("; %s %ld KiB in %u", kind_names[i], m->kinds[i].kib,
		       m->kinds[i].nr);
	printf("\n");
}
