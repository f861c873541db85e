// SPDX-License-Identifier: Apache-2.0
/*
 * watch - which worker looks at the bells.
 *
 * While bells are armed, one worker has the watch and looks at them: without a
 * pause for a moment after the last one rang, then between naps that get
 * longer. A worker that has just carried an operation looks, too, for a moment,
 * because the stream's next one is due. Now and then it asks after contexts: a
 * dead one's streams announce nothing. While no bell is armed, and no batch is
 * listed in uncalled.h, nobody looks.
 */
#ifndef CF_ENGINE_WATCH_H
#define CF_ENGINE_WATCH_H

/*
 * After a bell was armed, or a batch listed in uncalled.h: has a worker look,
 * soon. 0, or -errno where there is no worker, which cannot be after
 * cf_workers_reserve.
 */
int cf_watch_call(void);

/* Returns when no worker looks any more. No bell is armed, nor will be. */
void cf_watch_close(void);

void cf_watch_fork_prepare(void);
void cf_watch_fork_parent(void);
/* Nobody looks. */
void cf_watch_fork_child(void);

#endif
