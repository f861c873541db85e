// SPDX-License-Identifier: Apache-2.0
/* detour - see detour.h. What the alias has moved counts from the front. */
#include "engine/detour.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/file.h"
#include "core/log.h"
#include "engine/session.h"

/* Who is to blame for an EINVAL. */
enum blame {
	NOBODY_KNOWS,
	THE_FILE,
	THE_PAIR, /* of disk and GPU: host memory would be taken */
};

bool cf_detour_is_due(const struct cf_request *req, int code)
{
	return req->route.path == &cf_path_alias && cf_alias_is_refusal(code);
}

/*
 * Reads the first whole block again, into host memory with the alias's offset
 * in a page. A file that refuses this, too, is remembered as one that does not
 * go O_DIRECT. Nothing is learnt at the end of the file or where it may not be
 * read.
 */
static enum blame try_block(const struct cf_piece *piece)
{
	size_t block = cf_handle_block(piece->handle);
	size_t skip = -(size_t)piece->file_off & (block - 1);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = aligned_alloc(page, 2 * page);
	size_t at = (piece->mem.addr + skip) & (page - 1);
	ssize_t n = -ENOMEM;

	if (mem && block <= page)
		n = cf_file_read(piece->handle, piece->via, mem + at, block,
				 piece->file_off + (off_t)skip);
	free(mem);
	if (!cf_file_is_direct(piece->handle, piece->via))
		return THE_FILE;
	return n > 0 ? THE_PAIR : NOBODY_KNOWS;
}

static enum blame blame_for(const struct cf_piece *piece, int code)
{
	return code == -EINVAL ? try_block(piece) : THE_PAIR;
}

static void refuse(const struct cf_piece *piece, int code)
{
	cf_alias_refuse(piece->handle->disk, piece->mem.ordinal, code);
}

static void tell(const struct cf_piece *piece, enum blame blame, int code)
{
	cf_log_limited(CF_LOG_NOTICE,
		       "%s handle %u off %lld len %zu: %s (code %d, gpu %d), "
		       "taking another path",
		       cf_op_name(piece->op), cf_handle_number(piece->handle),
		       (long long)piece->file_off, piece->size,
		       blame == THE_FILE ? "the file refused its blocks" :
					   "no way between file and gpu",
		       code, piece->mem.ordinal);
}

/* Where try_block told nothing, blocks that go another way do. */
static void learn_late(const struct cf_request *rest, ssize_t n, int code)
{
	const struct cf_piece *piece = &rest->piece;

	if (n > 0 && cf_file_is_direct(piece->handle, piece->via) &&
	    rest->route.path->way(piece).direct)
		refuse(piece, code);
}

ssize_t cf_detour(struct cf_request *req, ssize_t n, int code)
{
	size_t done = n > 0 ? (size_t)n : 0;
	struct cf_request rest = cf_request_rest(req, done);
	enum blame blame = blame_for(&rest.piece, code);

	tell(&rest.piece, blame, code);
	if (blame == THE_PAIR)
		refuse(&rest.piece, code);
	if (blame == THE_PAIR)
		cf_route_choose(&rest.piece, cf_session_rules(), &rest.route);
	else
		rest.route.path = cf_route_next(&req->route);
	n = cf_request_travel(&rest);
	if (blame == NOBODY_KNOWS)
		learn_late(&rest, n, code);
	req->route = rest.route;
	return cf_request_in_all(done, n);
}

void cf_detour_early(struct cf_request *req)
{
	const struct cf_piece *piece = &req->piece;

	if (req->route.path == &cf_path_alias &&
	    cf_alias_refused(piece->handle->disk, piece->mem.ordinal))
		cf_route_choose(piece, cf_session_rules(), &req->route);
}
