// SPDX-License-Identifier: Apache-2.0
/* windows_survey - what is known of the chunks that a read touches. */
#include "core/windows_internal.h"

#include "core/piece.h"
#include "core/reread.h"
#include "core/window_table.h"

bool cf_windows_are_there(const struct cf_piece *piece, size_t chunk)
{
	const struct cf_stamp file = { .dev = piece->handle->dev,
				       .ino = piece->handle->ino };
	bool there;

	if (!cf_window_table_size())
		return false;
	pthread_mutex_lock(&cf_windows_lock);
	there = cf_window_table_find(&file, (uint64_t)piece->file_off / chunk);
	pthread_mutex_unlock(&cf_windows_lock);
	return there;
}

/* cf_windows_lock held */
static bool shows_locked(const struct cf_window *w,
			 const struct cf_stamp *stamp)
{
	return w && !w->making && cf_stamp_equal(&w->stamp, stamp);
}

/* Of the file's bytes from at to end, those in the first chunk. */
static void touch_from(struct cf_touch *touch, uint64_t at, uint64_t end)
{
	touch->chunk = at / touch->chunk_size;
	touch->from = at % touch->chunk_size;
	touch->to = touch->chunk_size;
	if (end - at < touch->to - touch->from)
		touch->to = touch->from + (end - at);
}

/*
 * cf_windows_lock held. Adds a chunk. notes: asks core/reread.h, which
 * remembers the read if touch->now is not 0.
 */
static void add_locked(struct cf_survey *survey, const struct cf_stamp *file,
		       const struct cf_touch *touch, bool notes)
{
	struct cf_touched touched;

	if (!shows_locked(cf_window_table_find(file, touch->chunk), file))
		survey->all_open = false;
	if (!notes)
		return;
	touched = cf_reread_note(touch);
	survey->again &= touched.again;
	survey->hot &= touched.hot;
	survey->whole &= touched.whole;
	if (touched.before < survey->since)
		survey->since = touched.before;
}

void cf_windows_survey(const struct cf_piece *piece, size_t size, bool reads,
		       const struct cf_windows_limits *limits,
		       struct cf_survey *survey)
{
	const struct cf_stamp *file = &piece->view.stamp;
	struct cf_touch touch = { .dev = file->dev,
				  .ino = file->ino,
				  .chunk_size = limits->chunk };
	uint64_t at = (uint64_t)piece->file_off, end = at + size;
	const struct cf_window *first;

	*survey = (struct cf_survey){ .all_open = true,
				      .again = true,
				      .hot = true,
				      .whole = true,
				      .since = UINT64_MAX };
	pthread_mutex_lock(&cf_windows_lock);
	if (reads)
		touch.now = cf_window_table_tick(
			size < limits->chunk ? size : limits->chunk);
	first = cf_window_table_find(file, at / limits->chunk);
	for (; at < end; at += touch.to - touch.from) {
		touch_from(&touch, at, end);
		add_locked(survey, file, &touch, size >= limits->open_from);
	}
	if (limits->mode == CF_WINDOWS_ALWAYS)
		survey->since = UINT64_MAX;
	survey->room = first || cf_windows_have_room_locked(limits->chunk,
							    survey->since);
	pthread_mutex_unlock(&cf_windows_lock);
}
