// SPDX-License-Identifier: Apache-2.0
/*
 * nic_find - the RDMA device, port and GID that go with an address.
 *
 * A RoCE port lists its network addresses as GIDs, IPv4 ones in IPv6's form.
 * InfiniBand ports do not: those are named by their device.
 */
#include "core/nic.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "core/sysfs.h"

#define DEVICES "/sys/class/infiniband"
#define MAX_GIDS 256

struct search {
	bool by_name;
	unsigned char gid[16]; /* the address that is looked for; or */
	const char *name;      /* the device */
	const char *device;    /* the one just searched */
	unsigned score;	       /* of the best so far; 0: none */
	struct cf_nic_place *best;
};

static bool parse_gid(const char *text, unsigned char gid[16])
{
	unsigned part[8];

	if (sscanf(text, "%4x:%4x:%4x:%4x:%4x:%4x:%4x:%4x", &part[0], &part[1],
		   &part[2], &part[3], &part[4], &part[5], &part[6],
		   &part[7]) != 8)
		return false;
	for (int i = 0; i < 8; i++) {
		gid[2 * i] = (unsigned char)(part[i] >> 8);
		gid[2 * i + 1] = (unsigned char)part[i];
	}
	return true;
}

static bool is_ipv4(const unsigned char gid[16])
{
	static const unsigned char prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

/*
 * Of two GIDs with one address that of RoCE v2 is better: it can be routed. Of
 * a named device an IPv4 address is best, and else the first entry will do.
 */
static unsigned score_of(const struct search *s, const unsigned char gid[16],
			 const char *type, unsigned index)
{
	unsigned v2 = !strcmp(type, "RoCE v2");

	if (!s->by_name)
		return memcmp(gid, s->gid, 16) ? 0 : 1 + v2;
	if (v2)
		return is_ipv4(gid) ? 3 : 2;
	return index == 0;
}

static void look_at(struct search *s, unsigned port, unsigned index,
		    const char *text)
{
	unsigned char gid[16];
	char type[32];
	unsigned score;

	(void)cf_sysfs_line(type, sizeof(type),
			    DEVICES "/%s/ports/%u/gid_attrs/types/%u",
			    s->device, port, index);
	if (!parse_gid(text, gid))
		return;
	score = score_of(s, gid, type, index);
	if (score <= s->score)
		return;
	s->score = score;
	*s->best = (struct cf_nic_place){ .port = port, .gid_index = index };
	snprintf(s->best->device, sizeof(s->best->device), "%s", s->device);
	memcpy(s->best->gid, gid, 16);
	if (is_ipv4(gid))
		memcpy(&s->best->ip, gid + 12, 4);
}

static bool try_port(void *arg, const char *port)
{
	struct search *s = arg;
	unsigned nr;
	char text[64];

	if (sscanf(port, "%u", &nr) != 1 || nr > 255)
		return true;
	for (unsigned i = 0; i < MAX_GIDS; i++) {
		if (cf_sysfs_line(text, sizeof(text),
				  DEVICES "/%s/ports/%u/gids/%u", s->device, nr,
				  i))
			break;
		look_at(s, nr, i, text);
	}
	return true;
}

static bool try_device(void *arg, const char *device)
{
	struct search *s = arg;
	char folder[128];

	if ((s->by_name && strcmp(device, s->name)) ||
	    strlen(device) >= sizeof(s->best->device))
		return true;
	s->device = device;
	snprintf(folder, sizeof(folder), DEVICES "/%s/ports", device);
	(void)cf_sysfs_each(folder, try_port, s);
	return true;
}

bool cf_nic_find(const char *name, struct cf_nic_place *place)
{
	struct search s = { .name = name, .best = place };
	struct in_addr v4;

	if (inet_pton(AF_INET, name, &v4) == 1) {
		s.gid[10] = s.gid[11] = 0xff;
		memcpy(s.gid + 12, &v4, 4);
	} else if (inet_pton(AF_INET6, name, s.gid) != 1) {
		s.by_name = true;
	}
	(void)cf_sysfs_each(DEVICES, try_device, &s);
	return s.score;
}
