// SPDX-License-Identifier: Apache-2.0
/*
 * nics - see nics.h. A RoCE port has its network addresses among its GIDs,
 * IPv4 ones in IPv6's form; others are named by their device, whose first port
 * is meant.
 */
#include "nics.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sysfs.h"

#define DEVICES "/sys/class/infiniband"

static bool is_active(const char *device, const char *port)
{
	char state[32];

	/* "4: ACTIVE" */
	return sys_line(state, sizeof(state), DEVICES "/%s/ports/%s/state",
			device, port) &&
	       atoi(state) == 4;
}

/* Has the port this address? NULL: any will do. */
static bool has_address(const char *device, const char *port,
			const struct in6_addr *address)
{
	struct in6_addr gid;
	char text[64];

	for (int i = 0; address; i++) {
		if (!sys_line(text, sizeof(text),
			      DEVICES "/%s/ports/%s/gids/%d", device, port, i))
			return false;
		if (inet_pton(AF_INET6, text, &gid) == 1 &&
		    !memcmp(&gid, address, sizeof(gid)))
			return true;
	}
	return true;
}

/* Is the first port that answers to it active? */
static bool find_port(const char *device, const struct in6_addr *address,
		      bool *active)
{
	struct dirent **ports = NULL;
	int nr = sys_list(&ports, DEVICES "/%s/ports", device);
	bool found = false;

	for (int i = 0; i < nr && !found; i++) {
		const char *port = ports[i]->d_name;

		found = has_address(device, port, address);
		if (found)
			*active = is_active(device, port);
	}
	sys_list_free(ports, nr);
	return found;
}

static bool is_up(const char *name)
{
	struct dirent **devices = NULL;
	struct in6_addr address;
	char mapped[80];
	bool found = false, active = false;
	int nr;

	snprintf(mapped, sizeof(mapped), "%s%.64s",
		 strchr(name, '.') && !strchr(name, ':') ? "::ffff:" : "",
		 name);
	if (inet_pton(AF_INET6, mapped, &address) != 1)
		return find_port(name, NULL, &active) && active;
	nr = sys_list(&devices, DEVICES);
	for (int i = 0; i < nr && !found; i++)
		found = find_port(devices[i]->d_name, &address, &active);
	sys_list_free(devices, nr);
	return active;
}

void nics_count(const char *list, struct nics *nics)
{
	char name[128];

	*nics = (struct nics){ 0 };
	while ((list = strchr(list, '"'))) {
		size_t len = strcspn(++list, "\"");

		snprintf(name, sizeof(name), "%.*s", (int)len, list);
		if (is_up(name))
			nics->up++;
		else
			nics->down++;
		list += len + (list[len] != '\0');
	}
}
