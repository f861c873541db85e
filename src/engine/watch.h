// SPDX-License-Identifier: Apache-2.0
/*
 * watch - who looks at the bells.
 *
 * While bells are armed, one worker has the watch and looks at them: without a
 * pause for a moment after the last news, then now and then, ever more seldom.
 * Whoever has just carried an operation looks, too, for a moment: the stream's
 * next one is due. Nobody looks while none is armed, and no callback is needed.
 */
#ifndef CF_ENGINE_WATCH_H
#define CF_ENGINE_WATCH_H

/*
 * Sees to it that a worker looks, and soon. 0 or -errno, which cannot be
 * after cf_workers_reserve.
 */
int cf_watch_call(void);

/* Returns when nobody looks any more; none is armed, nor will be. */
void cf_watch_close(void);

void cf_watch_fork_prepare(void);
void cf_watch_fork_parent(void);
/* Nobody looks. */
void cf_watch_fork_child(void);

#endif
