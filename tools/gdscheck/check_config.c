// SPDX-License-Identifier: Apache-2.0
/* check_config - the configuration, as gdscheck shows it. */
#include "check_config.h"

#include <opencufile.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "report.h"

/*
 * The lines of the section, in the order that scripts know (contract 5.1):
 * name, and the key where it is called otherwise today. A name with '!' at
 * its end has no blank before the colon.
 */
static const struct {
	const char *name, *key;
	enum { AS_IT_IS, AS_NUMBER, IF_ANY } how;
} lines[] = {
	{ "properties.use_pci_p2pdma", NULL, AS_IT_IS },
	{ "properties.use_compat_mode", "properties.allow_compat_mode",
	  AS_IT_IS },
	{ "properties.force_compat_mode", NULL, AS_IT_IS },
	{ "properties.gds_rdma_write_support", NULL, AS_IT_IS },
	{ "properties.use_poll_mode", NULL, AS_IT_IS },
	{ "properties.poll_mode_max_size_kb", NULL, AS_IT_IS },
	{ "properties.max_batch_io_size", "properties.io_batchsize", AS_IT_IS },
	{ "properties.max_batch_io_timeout_msecs", NULL, AS_IT_IS },
	{ "properties.max_direct_io_size_kb", NULL, AS_IT_IS },
	{ "properties.max_device_cache_size_kb", NULL, AS_IT_IS },
	{ "properties.per_buffer_cache_size_kb", NULL, AS_IT_IS },
	{ "properties.max_device_pinned_mem_size_kb", NULL, AS_IT_IS },
	{ "properties.posix_pool_slab_size_kb", NULL, AS_IT_IS },
	{ "properties.posix_pool_slab_count", NULL, AS_IT_IS },
	{ "properties.gpu_bounce_buffer_slab_size_kb",
	  "properties.gpu_bounce_buffer_slab_config.slab_size_kb", IF_ANY },
	{ "properties.gpu_bounce_buffer_slab_count",
	  "properties.gpu_bounce_buffer_slab_config.slab_count", IF_ANY },
	{ "properties.rdma_peer_affinity_policy",
	  "properties.rdma_load_balancing_policy", AS_IT_IS },
	{ "properties.rdma_dynamic_routing", NULL, AS_NUMBER },
	{ "fs.generic.posix_unaligned_writes", NULL, AS_IT_IS },
	{ "fs.lustre.posix_gds_min_kb!", NULL, AS_IT_IS },
	{ "fs.lustre.use_pci_p2pdma", NULL, AS_IT_IS },
	{ "fs.beegfs.posix_gds_min_kb!", NULL, AS_IT_IS },
	{ "fs.beegfs.use_pci_p2pdma", NULL, AS_IT_IS },
	{ "fs.scatefs.posix_gds_min_kb!", NULL, AS_IT_IS },
	{ "fs.scatefs.use_pci_p2pdma", NULL, AS_IT_IS },
	{ "fs.weka.rdma_write_support!", NULL, AS_IT_IS },
	{ "fs.nfs.use_pci_p2pdma", NULL, AS_IT_IS },
	{ "fs.gpfs.gds_write_support!", NULL, AS_IT_IS },
	{ "fs.gpfs.gds_async_support!", NULL, AS_IT_IS },
	{ "fs.gpfs.use_pci_p2pdma", NULL, AS_IT_IS },
	{ "fs.virtiofs.use_pci_p2pdma", NULL, AS_IT_IS },
	{ "profile.cufile_stats", NULL, AS_IT_IS },
	{ "miscellaneous.api_check_aggressive", NULL, AS_IT_IS },
	{ "execution.max_io_threads", NULL, AS_IT_IS },
	{ "execution.max_io_queue_depth", NULL, AS_IT_IS },
	{ "execution.parallel_io", NULL, AS_IT_IS },
	{ "execution.min_io_threshold_size_kb", NULL, AS_IT_IS },
	{ "execution.max_request_parallelism", NULL, AS_IT_IS },
	{ "properties.force_odirect_mode", NULL, AS_IT_IS },
	{ "properties.prefer_iouring", NULL, AS_IT_IS },
	{ "block.raid.use_pci_p2pdma", NULL, AS_IT_IS },
	{ "block.nvme.use_pci_p2pdma", NULL, AS_IT_IS },
	{ "block.nvmeof.use_pci_p2pdma", NULL, AS_IT_IS },
};

bool config_value(const char *key, char *value, unsigned size)
{
	ocf_config_t config = { .struct_size = sizeof(config) };

	for (unsigned i = 0; !ocf_config_get(i, &config).err; i++) {
		if (strcmp(config.key, key) != 0)
			continue;
		snprintf(value, size, "%s", config.value);
		return true;
	}
	return false;
}

/* Lists without brackets and commas, texts without quotes. */
static void strip(char *value)
{
	char *to = value;

	for (const char *from = value; *from; from++)
		if (!strchr("[],\"", *from))
			*to++ = *from;
	*to = '\0';
}

void config_section(void)
{
	char value[1024], key[128];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		int len = (int)strcspn(lines[i].name, "!");

		snprintf(key, sizeof(key), "%.*s", len, lines[i].name);
		if (!config_value(lines[i].key ? lines[i].key : key, value,
				  sizeof(value)))
			continue;
		strip(value);
		if (lines[i].how == IF_ANY && !*value)
			continue;
		if (lines[i].how == AS_NUMBER)
			snprintf(value, sizeof(value), "%d", *value == 't');
		printf(" %s%s: %s\n", key, lines[i].name[len] ? "" : " ",
		       value);
	}
}

bool config_dump(void)
{
	ocf_config_t config = { .struct_size = sizeof(config) };
	CUfileError_t status = ocf_config_get(0, &config);

	if (!check(status, "ocf_config_get", ""))
		return false;
	for (unsigned i = 0; !ocf_config_get(i, &config).err; i++)
		printf("%s : %s (%s)%s%s%s%s\n", config.key, config.value,
		       config.origin, config.in_force[0] ? " in force: " : "",
		       config.in_force,
		       config.no_effect ? " no effect here: " : "",
		       config.no_effect ? config.no_effect : "");
	return true;
}

void config_problems(void)
{
	char text[1024];

	for (unsigned i = 0; !ocf_config_note(i, text, sizeof(text)).err; i++)
		fail("%s", text);
}

void config_environment(void)
{
	for (char **name = environ; *name; name++)
		if (!strncmp(*name, "CUFILE_", 7) ||
		    !strncmp(*name, "OCF_", 4)) {
			size_t len = strcspn(*name, "=");

			if ((*name)[len])
				printf(" %.*s : %s\n", (int)len, *name,
				       *name + len + 1);
		}
}
