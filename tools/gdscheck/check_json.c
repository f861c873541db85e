// SPDX-License-Identifier: Apache-2.0
/* check_json - what gdscheck finds, as one JSON object on stdout. */
#include "check_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>
#include "report.h"

/* Names of files may be any bytes; as JSON they are what can be shown. */
#define WRITE_FLAGS \
	(YYJSON_WRITE_PRETTY | YYJSON_WRITE_ALLOW_INVALID_UNICODE | \
	 YYJSON_WRITE_ESCAPE_UNICODE)

static bool print_and_free(yyjson_mut_doc *doc, yyjson_mut_val *root)
{
	char *text = NULL;

	if (root) {
		yyjson_mut_doc_set_root(doc, root);
		text = yyjson_mut_write(doc, WRITE_FLAGS, NULL);
	}
	yyjson_mut_doc_free(doc);
	if (!text)
		return fail("no memory for the answer");
	puts(text);
	free(text);
	return true;
}

/* "" is what is not known. */
static bool add_text(yyjson_mut_doc *doc, yyjson_mut_val *obj, const char *key,
		     const char *text)
{
	return text && *text ? yyjson_mut_obj_add_strcpy(doc, obj, key, text) :
			       yyjson_mut_obj_add_null(doc, obj, key);
}

static bool add_device(yyjson_mut_doc *doc, yyjson_mut_val *root,
		       const struct place *p)
{
	yyjson_mut_val *obj;

	if (!p->name[0])
		return yyjson_mut_obj_add_null(doc, root, "device");
	obj = yyjson_mut_obj_add_obj(doc, root, "device");
	return obj && add_text(doc, obj, "name", p->name) &&
	       add_text(doc, obj, "disk", p->disk) &&
	       yyjson_mut_obj_add_uint(doc, obj, "major", p->major) &&
	       yyjson_mut_obj_add_uint(doc, obj, "minor", p->minor) &&
	       add_text(doc, obj, "bus", p->bus) &&
	       add_text(doc, obj, "model", p->model) &&
	       add_text(doc, obj, "driver", p->driver) &&
	       yyjson_mut_obj_add_int(doc, obj, "numa_node", p->node);
}

static bool add_gpu(yyjson_mut_doc *doc, yyjson_mut_val *gpus,
		    const struct peers *peers, int i)
{
	yyjson_mut_val *obj = yyjson_mut_arr_add_obj(doc, gpus);

	return obj && yyjson_mut_obj_add_int(doc, obj, "index", i) &&
	       add_text(doc, obj, "address", peers->gpus[i].bdf) &&
	       yyjson_mut_obj_add_bool(doc, obj, "reachable", peers->open[i]);
}

static bool add_one_missing(yyjson_mut_doc *doc, yyjson_mut_val *list,
			    const struct missing *missing)
{
	yyjson_mut_val *obj = yyjson_mut_arr_add_obj(doc, list);

	return obj &&
	       (missing->gpu < 0 ? yyjson_mut_obj_add_null(doc, obj, "gpu") :
				   yyjson_mut_obj_add_int(doc, obj, "gpu",
							  missing->gpu)) &&
	       add_text(doc, obj, "what", missing->what) &&
	       add_text(doc, obj, "remedy", missing->remedy);
}

/* Whether disks reach registered memory; null where there is no disk. */
static bool add_peers(yyjson_mut_doc *doc, yyjson_mut_val *root,
		      const struct asks *asks)
{
	const struct peers *peers = &asks->peers;
	yyjson_mut_val *obj, *gpus, *list;
	bool ok = true;

	if (!asks->place.name[0])
		return yyjson_mut_obj_add_null(doc, root, "peer_to_peer");
	obj = yyjson_mut_obj_add_obj(doc, root, "peer_to_peer");
	gpus = obj ? yyjson_mut_obj_add_arr(doc, obj, "gpus") : NULL;
	list = gpus ? yyjson_mut_obj_add_arr(doc, obj, "missing") : NULL;
	for (int i = 0; list && ok && i < peers->nr_gpus; i++)
		ok = add_gpu(doc, gpus, peers, i);
	for (unsigned i = 0; list && ok && i < peers->nr_missing; i++)
		ok = add_one_missing(doc, list, &peers->missing[i]);
	return list && ok;
}

static bool add_refusals(yyjson_mut_doc *doc, yyjson_mut_val *obj,
			 const ocf_explain_t *e)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, obj, "refused");

	for (unsigned i = 0; list && i < e->nr_refusals; i++) {
		yyjson_mut_val *one = yyjson_mut_arr_add_obj(doc, list);

		if (!one || !add_text(doc, one, "path", e->refusals[i].path) ||
		    !add_text(doc, one, "reason", e->refusals[i].reason) ||
		    !add_text(doc, one, "remedy", e->refusals[i].remedy))
			return false;
	}
	return list;
}

static bool add_ask(yyjson_mut_doc *doc, yyjson_mut_val *obj,
		    const struct ask *ask)
{
	const ocf_explain_t *e = &ask->e;
	char reason[2048];

	ocf_explain_text(e, reason, sizeof(reason));
	return obj && add_text(doc, obj, "memory", asks_memory(e->memory)) &&
	       yyjson_mut_obj_add_bool(doc, obj, "aligned", ask->aligned) &&
	       yyjson_mut_obj_add_bool(doc, obj, "o_direct", ask->direct) &&
	       add_text(doc, obj, "path", e->path) &&
	       add_text(doc, obj, "reason", reason) &&
	       yyjson_mut_obj_add_int(doc, obj, "error", e->code) &&
	       yyjson_mut_obj_add_uint(doc, obj, "size", e->size) &&
	       yyjson_mut_obj_add_uint(doc, obj, "direct_bytes",
				       e->direct_bytes) &&
	       yyjson_mut_obj_add_uint(doc, obj, "buffered_bytes",
				       e->buffered_bytes) &&
	       add_text(doc, obj, "page_cache", e->page_cache) &&
	       add_text(doc, obj, "page_cache_remedy", e->page_cache_remedy) &&
	       yyjson_mut_obj_add_uint(doc, obj, "carriers", e->carriers) &&
	       yyjson_mut_obj_add_uint(doc, obj, "parts", e->parts) &&
	       add_refusals(doc, obj, e);
}

static bool add_asks(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *key,
		     const struct asks *asks, int op)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, key);

	for (unsigned i = 0; list && i < asks->nr; i++)
		if (!add_ask(doc, yyjson_mut_arr_add_obj(doc, list),
			     &asks->asks[op][i]))
			return false;
	return list;
}

static bool add_file(yyjson_mut_doc *doc, yyjson_mut_val *root,
		     const struct asks *asks)
{
	const struct place *p = &asks->place;

	return root && add_text(doc, root, "file", asks->name) &&
	       yyjson_mut_obj_add_int(doc, root, "size", asks->st.st_size) &&
	       yyjson_mut_obj_add_bool(doc, root, "writable", asks->writable) &&
	       add_text(doc, root, "filesystem", p->type) &&
	       add_text(doc, root, "mount", p->mount) &&
	       add_text(doc, root, "source", p->source) &&
	       add_text(doc, root, "options", p->options) &&
	       add_device(doc, root, p) &&
	       yyjson_mut_obj_add_uint(doc, root, "block",
				       asks->asks[OCF_READ][0].e.block) &&
	       add_text(doc, root, "no_o_direct", asks->why_not_direct) &&
	       add_asks(doc, root, "read", asks, OCF_READ) &&
	       add_asks(doc, root, "write", asks, OCF_WRITE) &&
	       add_peers(doc, root, asks);
}

bool json_file(const struct asks *asks)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = doc ? yyjson_mut_obj(doc) : NULL;

	return print_and_free(doc, add_file(doc, root, asks) ? root : NULL);
}

bool json_file_error(const char *name, const char *why)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = doc ? yyjson_mut_obj(doc) : NULL;
	bool ok = root && add_text(doc, root, "file", name) &&
		  add_text(doc, root, "error", why);

	return print_and_free(doc, ok ? root : NULL);
}

static bool add_value(yyjson_mut_doc *doc, yyjson_mut_val *root,
		      const ocf_config_t *c)
{
	yyjson_mut_val *obj = yyjson_mut_obj_add_obj(doc, root, c->key);
	yyjson_doc *value = yyjson_read(c->value, strlen(c->value), 0);
	yyjson_mut_val *copy =
		value ? yyjson_val_mut_copy(doc, yyjson_doc_get_root(value)) :
			yyjson_mut_strcpy(doc, c->value);

	yyjson_doc_free(value);
	return obj && copy && yyjson_mut_obj_add_val(doc, obj, "value", copy) &&
	       add_text(doc, obj, "origin", c->origin) &&
	       add_text(doc, obj, "no_effect", c->no_effect) &&
	       (c->in_force[0] ? yyjson_mut_obj_add_uint(
					 doc, obj, "in_force",
					 strtoull(c->in_force, NULL, 10)) :
				 yyjson_mut_obj_add_null(doc, obj, "in_force"));
}

static bool add_notes(yyjson_mut_doc *doc, yyjson_mut_val *root)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "problems");
	char text[1024];

	for (unsigned i = 0;
	     list && !ocf_config_note(i, text, sizeof(text)).err; i++)
		if (!yyjson_mut_arr_add_strcpy(doc, list, text))
			return false;
	return list;
}

bool json_config(void)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = doc ? yyjson_mut_obj(doc) : NULL;
	yyjson_mut_val *rows =
		root ? yyjson_mut_obj_add_obj(doc, root, "configuration") :
		       NULL;
	ocf_config_t config = { .struct_size = sizeof(config) };
	bool ok = rows;

	for (unsigned i = 0; ok && !ocf_config_get(i, &config).err; i++)
		ok = add_value(doc, rows, &config);
	ok = ok && add_notes(doc, root);
	return print_and_free(doc, ok ? root : NULL);
}
