// SPDX-License-Identifier: Apache-2.0
/*
 * internal.h - what the files of the fake CUDA driver share.
 *
 * One lock, fc.lock, guards every table, object and queue here unless the
 * field says otherwise; memory contents are moved without it, by the threads
 * of the streams. A function called ..._locked, and every static function
 * reached through FC_LOCKED, runs with it held.
 *
 *     OK:  fc.lock, complaint lock
 *     OK:  fc.lock, plan lock
 *     OK:  ctx->host_fn_lock, fc.lock
 *  ERROR:  fc.lock, ctx->host_fn_lock
 *   NEVER: fc.lock while a kernel, a host function or a copy runs
 *
 * Always built without the toolkit's cuda.h, whose macros would rename our
 * entry points.
 */
#ifndef FC_INTERNAL_H
#define FC_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cuda_client.h"
#include "fakecuda.h"
#include "ptx.h"

#ifdef CUFILE_HAVE_CUDA_H
#error "the fake driver is compiled with -DCUFILE_NO_CUDA_H"
#endif

/* Linux 5.14 */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum { FC_MAX_GPUS = 16, FC_STACK = 64 };

/* --- handles: what a client holds instead of a pointer to our objects */

enum fc_kind {
	FC_CTX = 1,
	FC_STREAM,
	FC_EVENT,
	FC_MODULE,
	FC_FUNCTION,
	FC_GRAPH,
	FC_EXEC,
	FC_POOL,
	FC_PHYS,
	FC_USER,
};

struct fc_handle {
	enum fc_kind kind;
	void *obj; /* NULL once destroyed */
	struct fc_handle *next_dead;
};

/* fc.lock is held. find complains of a handle whose object was destroyed. */
struct fc_handle *fc_handle_new(enum fc_kind kind, void *obj);
void *fc_handle_find(const void *handle, enum fc_kind kind);
bool fc_handle_was(const void *handle, enum fc_kind kind);
void fc_handle_kill(struct fc_handle *h);
void fc_handle_each(enum fc_kind kind, void (*fn)(void *obj, void *arg),
		    void *arg);

/* --- live counters */

enum fc_live {
	LIVE_CTX,
	LIVE_PRIMARY,
	LIVE_STREAM,
	LIVE_EVENT,
	LIVE_MEM,
	LIVE_POOL_MEM,
	LIVE_MANAGED,
	LIVE_HOST_ALLOC,
	LIVE_HOST_REGISTER,
	LIVE_MODULE,
	LIVE_GRAPH,
	LIVE_EXEC,
	LIVE_POOL,
	LIVE_PHYS,
	LIVE_MAP,
	LIVE_RESERVE,
	LIVE_USER,
	NR_LIVE,
};

/* --- the driver as a whole */

struct fc_globals {
	pthread_mutex_t lock;
	atomic_bool inited;
	atomic_bool forked; /* a child of an initialised parent */
	atomic_bool gone;   /* deinitialised */
	atomic_ulong late_calls;
	atomic_uint copy_delay_us;
	atomic_uint legacy_delay_us;
	atomic_uint stream_depth;
	atomic_int writes_ordering; /* see fakecuda_writes_ordering */
	atomic_int flush_options;
	atomic_ulong stream_full;
	atomic_bool idle_calls;
	atomic_uint channels; /* that the streams of a context share, or 0 */
	atomic_long live[NR_LIVE];
	bool reuse_handles;
	bool no_dmabuf;
	bool launches_wait;
	bool coherent;
	int version;
	int compute;	    /* capability, 10 times */
	const char *memory; /* a file in place of memory files, or NULL */
	bool report;
	bool strict;
	bool abort_on_complaint;
	int pid; /* of the process that called cuInit */
	int nr_gpus;
	uint64_t gpu_mem;
	uint64_t gpu_used[FC_MAX_GPUS];
	uint64_t next_id; /* of contexts, streams, buffers */
	uint64_t next_order;
};
extern struct fc_globals fc;

struct fc_thread {
	CUcontext stack[FC_STACK];
	int depth;
	int capture_mode;
	bool in_host_fn;
	unsigned int op_delay_us; /* planned for the work of this call */
	uint64_t id;
	struct fc_op *kernel_op; /* the launch that runs on this thread */
	bool bad_map;
};
extern __thread struct fc_thread fc_self;

void fc_lock(void);
void fc_unlock(void);
uint64_t fc_thread_id(void);
uint64_t fc_now_ns(void);
void *fc_zalloc(size_t size);
void fc_env_defaults(void);
void fc_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#define FC_LOCKED(expr) \
	({ \
		fc_lock(); \
		int locked_ = (expr); \
		fc_unlock(); \
		locked_; \
	})

/* --- the door: every entry point begins with FC_ENTER */

struct fc_call {
	const char *name;
	atomic_ulong calls;
	atomic_bool known;
	struct fc_call *next; /* guarded by the plan lock */
};
enum {
	FC_NORMAL = 0,
	FC_BEFORE_INIT = 1, /* may be called before cuInit */
	FC_PASS = 2,	    /* gets into a context that a call has shut */
};
int fc_enter(struct fc_call *call, unsigned int how);
int fc_plan_answer(struct fc_call *call, unsigned int *delay_us);
void fc_plan_reset(void);
#define FC_ENTER(how) \
	do { \
		static struct fc_call call_ = { .name = __func__ }; \
		int entered_ = fc_enter(&call_, (how)); \
		if (entered_) \
			return entered_; \
	} while (0)

/* --- contexts */

struct fc_ctx {
	struct fc_handle *h;
	struct fc_ctx *next; /* in the list of all that ever were */
	int dev;
	unsigned int flags;
	uint64_t id;
	bool primary;
	atomic_bool dead;
	atomic_int lost; /* the CUresult that broke it */
	struct fc_stream *streams;
	struct fc_stream *legacy;     /* one of streams, or NULL */
	unsigned int nr_made;	      /* streams that ever were */
	pthread_mutex_t host_fn_lock; /* host functions run one at a time */
	unsigned int shut;	      /* calls inside that keep others out */
	pthread_cond_t opened;	      /* where the others wait */
};

struct fc_ctx *fc_ctx_new(int dev, unsigned int flags, struct fc_handle *reuse);
void fc_ctx_kill(struct fc_ctx *ctx);
struct fc_ctx *fc_ctx_all(void);
int fc_ctx_state(const struct fc_ctx *ctx);
int fc_ctx_find(CUcontext h, struct fc_ctx **out);
int fc_current(struct fc_ctx **out);
int fc_device(CUdevice dev);
void fc_ctx_break(struct fc_ctx *ctx, int result);
void fc_ctx_drain(struct fc_ctx *ctx);
void fc_ctx_wake_all(void);
int fc_idle_door(void);
void fc_idle_await(struct fc_ctx *ctx, bool shut);
void fc_primary_reset(void);

/* --- memory ranges: everything that the driver knows by address */

enum fc_mem {
	MEM_DEVICE,
	MEM_POOL,
	MEM_MANAGED,
	MEM_HOST,
	MEM_REGISTERED,
	MEM_VMM,
};

struct fc_range {
	uint64_t base;
	size_t size; /* as requested */
	enum fc_mem kind;
	struct fc_ctx *ctx; /* owner; NULL for pool and VMM memory */
	int dev;
	char *data; /* where the bytes are for us; base for host kinds */
	void *map;  /* our mapping that holds data, of map_len */
	void *va;   /* the client's addresses, of map_len and a guard page */
	size_t map_len;
	int fd; /* of the memory, or -1 */
	unsigned int flags;
	uint64_t buffer_id;
	unsigned int sync_memops;
	unsigned int in_flight; /* operations queued that touch it */
	bool freeing;		/* cuMemFreeAsync was called, or it goes */
	const struct fc_stream *freed_in; /* that cuMemFreeAsync; to compare */
	bool dead;	 /* kept to recognise a use after free */
	bool evicted;	 /* no longer in the table */
	bool accessible; /* VMM: cuMemSetAccess was called */
	struct fc_range *next_tomb;
	struct fc_phys *phys;
	struct fc_pool *pool;
	struct fc_pages *pages; /* registered read-only */
};

int fc_range_new(enum fc_mem kind, size_t size, struct fc_ctx *ctx, int dev,
		 struct fc_range **out);
int fc_range_insert(struct fc_range *r);
size_t fc_page(void); /* bytes of the kernel's */
struct fc_range *fc_range_at(uint64_t addr);
struct fc_range *fc_range_after(uint64_t addr);
struct fc_range *fc_range_live(uint64_t addr);
void fc_range_remove(struct fc_range *r);
void fc_range_retire(struct fc_range *r);
void fc_range_retire_of(const struct fc_ctx *ctx);
void fc_range_drain(struct fc_range *r);
void fc_range_hold(struct fc_range *r);
void fc_range_release(struct fc_range *r);
void fc_range_each(void (*fn)(struct fc_range *r, void *arg), void *arg);
void fc_reservation_of(const struct fc_range *r, uint64_t *base, size_t *size);
int fc_memfd(size_t len);
enum fc_live fc_range_live_kind(const struct fc_range *r);
static inline bool fc_is_host_kind(const struct fc_range *r)
{
	return r->kind == MEM_HOST || r->kind == MEM_REGISTERED;
}

struct fc_phys { /* a cuMemCreate allocation */
	struct fc_handle *h;
	size_t size;
	int dev;
	int types; /* of handles that it may be exported as */
	int fd;
	char *map;
	/* of the process, pinned, to be read (tests/fake_rm.h); or NULL */
	struct fc_pages *pages;
	int handles; /* cuMemCreate and retains, less releases */
	int maps;
};
static inline bool fc_is_pinned(const struct fc_range *r)
{
	return r->kind == MEM_VMM && r->phys->pages;
}
void fc_phys_unmapped(struct fc_phys *phys);
void fc_vmm_reset(void);

struct fc_pool {
	struct fc_handle *h;
	int dev;
	bool is_default;
};
void fc_pool_reset(void);

/* --- operations and streams */

enum fc_opcode {
	OP_MARK, /* nothing but its place in the order */
	OP_COPY,
	OP_FILL,
	OP_HOST,
	OP_WAIT_VALUE,
	OP_WRITE_VALUE,
	OP_KERNEL,
	OP_FREE,
};
enum { /* which addresses of a copy must be known to the driver */
       COPY_DST_KNOWN = 1,
       COPY_SRC_KNOWN = 2,
};

struct fc_dep {
	struct fc_stream *s;
	uint64_t seq;
};

/* A graph's, exec's or launch's references on user objects. */
struct fc_user;
struct fc_users {
	struct fc_user **objs;
	unsigned int nr;
};
void fc_users_add(struct fc_users *users, struct fc_user *user);
struct fc_users fc_users_copy(const struct fc_users *users);
void fc_users_drop(struct fc_users *users);

struct fc_op {
	struct fc_op *next;
	enum fc_opcode code;
	struct fc_ctx *ctx;
	const struct fc_stream *stream; /* to compare; NULL: in none yet */
	uint64_t seq;
	uint64_t order; /* among those of all streams */
	unsigned int delay_us;
	struct fc_dep *deps; /* must be complete before this one starts */
	unsigned int nr_deps;
	struct fc_range **held; /* memory that it touches */
	unsigned int nr_held;
	struct fc_event *event; /* OP_MARK: gets the time */
	uint64_t dst;		/* also the address of fills and values */
	uint64_t src;
	size_t size;
	unsigned int need;
	void *snapshot; /* OP_COPY: the source as it was at the call */
	uint64_t value;
	unsigned int width;
	unsigned int flags;
	CUhostFn host_fn;
	void *host_arg;
	struct fc_kernel_call *kernel;
	struct fc_users users; /* OP_MARK: held until a launch is over */
};

struct fc_op *fc_op_new(enum fc_opcode code);
struct fc_op *fc_op_clone(const struct fc_op *op);
void fc_op_free(struct fc_op *op);
void fc_op_depend(struct fc_op *op, struct fc_stream *s, uint64_t seq);
void fc_op_hold(struct fc_op *op, struct fc_range *r);
int fc_op_resolve(struct fc_op *op);
int fc_op_cover(struct fc_op *op, uint64_t addr, size_t size, bool known,
		bool write);
int fc_op_run(struct fc_op *op);   /* without fc.lock */
void fc_op_land(struct fc_op *op); /* with it: a written value */

/* Pages that were registered read-only, or pinned, as a GPU reads them. */
struct fc_pages *fc_pages_hold(const void *mem, size_t size);
void fc_pages_let_go(struct fc_pages *pages); /* or NULL */
void fc_pages_copy(const struct fc_pages *pages, char *to, const char *from,
		   size_t size);

struct fc_stream {
	struct fc_handle *h; /* NULL for default streams */
	struct fc_ctx *ctx;
	struct fc_stream *next; /* of ctx->streams */
	unsigned int flags;
	int priority;
	uint64_t id;
	unsigned int place; /* among the context's streams: gives its channel */
	uint64_t owner;	    /* thread of a per-thread default stream, or 0 */
	uint64_t submitted;
	uint64_t completed;
	struct fc_op *head;
	struct fc_op **tail;
	pthread_cond_t work; /* the worker waits here for operations */
	pthread_cond_t done; /* everyone waits here for completed */
	bool spawned;
	bool closing;
	bool linked;
	int refs;
	struct fc_capture *cap;
	bool unjoined; /* captured work that the origin has not waited for */
};

enum {
	STREAM_ANY = 0,
	STREAM_OF_CURRENT = 1, /* must belong to the current context */
	STREAM_NOT_LEGACY = 2, /* the legacy default stream is refused */
	STREAM_ANYWHERE = 4,   /* no context need be current, as on an H200 */
	STREAM_PEEK = 8, /* captures go on, though a refusal tells of one */
};
int fc_stream_get(CUstream h, unsigned int how, struct fc_stream **out);
struct fc_stream *fc_stream_new(struct fc_ctx *ctx, unsigned int flags);
void fc_stream_close(struct fc_stream *s);
void fc_stream_unlink(struct fc_stream *s);
void fc_stream_put(struct fc_stream *s);
bool fc_stream_blocks(const struct fc_stream *s);
int fc_submit(struct fc_stream *s, struct fc_op *op, uint64_t *seq);
int fc_enqueue(struct fc_stream *s, struct fc_op *op);
int fc_wait(struct fc_stream *s, uint64_t seq);
int fc_wait_all_of(struct fc_stream *s);
bool fc_stream_idle(struct fc_stream *s);
const struct fc_dep *fc_op_unmet(const struct fc_op *op);
void fc_channel_await(struct fc_stream *s, const struct fc_op *op);

struct fc_event {
	struct fc_handle *h;
	struct fc_ctx *ctx;
	unsigned int flags;
	int refs;
	struct fc_stream *stream; /* of the last record */
	uint64_t seq;
	uint64_t done_ns;
	struct fc_op *all;	/* or, of a context, what it has to wait for */
	struct fc_capture *cap; /* last recorded inside this capture */
	struct fc_stream *cap_stream;
};
void fc_event_put(struct fc_event *e);
void fc_event_kill(struct fc_event *e);

/* --- capture and graphs */

struct fc_graph {
	struct fc_handle *h;
	struct fc_op *head;
	struct fc_op **tail;
	size_t nr;
	struct fc_users users;
};

struct fc_capture {
	struct fc_capture *next; /* of those that have not ended */
	struct fc_stream *origin;
	struct fc_graph *graph;
	int mode;
	uint64_t thread;
	uint64_t id;
	bool invalid;
	bool ended;
};

int fc_capture_append(struct fc_stream *s, struct fc_op *op);
int fc_capture_forbids(struct fc_stream *s);
int fc_capture_unsafe(const char *what);
int fc_capture_hit(struct fc_ctx *ctx, bool blocking_only, int result);
bool fc_capture_blocks(const struct fc_ctx *ctx);
void fc_capture_abandon(struct fc_stream *s);
void fc_graph_reset(void);
void fc_user_reset(void);

/* --- kernels */

struct fc_function {
	struct fc_handle *h;
	struct fc_ctx *ctx;
	struct fc_function *next; /* of the module */
	char name[128];
	fakecuda_kernel fn, ahead;
	struct fc_ptx_entry params;
	bool sized; /* the parameter sizes are known */
};

struct fc_kernel_call {
	char name[128];
	fakecuda_kernel fn;
	fakecuda_kernel ahead; /* NULL: may not come before its turn */
	struct fakecuda_launch launch;
	size_t args_size;
	unsigned char *args;
	void **params;
};
struct fc_kernel_call *fc_kernel_clone(const struct fc_kernel_call *k);
void fc_kernel_free(struct fc_kernel_call *k);
int fc_kernel_run(struct fc_op *op);
void fc_module_kill_of(struct fc_ctx *ctx);

#endif
