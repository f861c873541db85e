// SPDX-License-Identifier: Apache-2.0
/* fake_verbs - see fake_verbs.h. One lock over everything. */
#include "fake_verbs.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"
#include "rdma_sys.h"
#include "seam/verbs.h"

#define MTU 5 /* IBV_MTU_4096 */
/* of a description; see core/remote.h */
#define GID_AT 49
#define TEXT_SIZE (GID_AT + 32)

enum kind { DEVICE, CONTEXT, PD, CQ, SRQ, QP, MR };

/* Every object, whatever it is; mr and qp are first of what they begin. */
struct object {
	union {
		struct cf_ibv_mr mr;
		struct cf_ibv_qp qp;
	};
	enum kind kind;
	struct object *parent; /* that must outlive it */
	unsigned children;
	bool dead;
	int access;
	int state; /* of a queue pair */
	const struct rdma_sys_nic *nic;
	struct object *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects; /* lock, and all below */
static unsigned next_key, broken, calls[FV_NR_ROWS];
static int last_access;
static struct fake_target target;
static struct {
	enum fake_row row;
	unsigned nth;
	bool persist, fired;
} plan;
static struct cf_verbs table;

#define RULE(good) rule(good, #good, __func__)

static void rule(bool good, const char *what, const char *where)
{
	if (good)
		return;
	broken++;
	print_message("verbs: %s: not %s\n", where, what);
}

/* lock held */
static bool fails(enum fake_row row)
{
	unsigned nr = ++calls[row];
	bool now = plan.nth && plan.row == row &&
		   (nr == plan.nth || (plan.persist && nr > plan.nth));

	plan.fired |= now;
	return now;
}

/* lock held */
static struct object *make(enum kind kind, void *parent)
{
	struct object *o = calloc(1, sizeof(*o)), *above = parent;

	assert_non_null(o);
	o->kind = kind;
	o->parent = above;
	if (above) {
		RULE(!above->dead);
		above->children++;
		o->nic = above->nic;
	}
	o->next = objects;
	objects = o;
	return o;
}

static void *locked_make(enum fake_row row, enum kind kind, void *parent)
{
	void *made = NULL;

	pthread_mutex_lock(&lock);
	if (!fails(row))
		made = make(kind, parent);
	pthread_mutex_unlock(&lock);
	return made;
}

/* Objects are kept until the end, so that a second end is seen. */
static int drop(void *what, enum kind kind)
{
	struct object *o = what;

	pthread_mutex_lock(&lock);
	RULE(o->kind == kind);
	RULE(!o->dead);
	RULE(!o->children);
	o->dead = true;
	if (o->parent)
		o->parent->children--;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* -------------------------------------------------------------- the table */

static void **get_device_list(int *nr)
{
	void **list = NULL;

	pthread_mutex_lock(&lock);
	*nr = 0;
	if (!fails(FV_GET_DEVICE_LIST)) {
		list = calloc(RDMA_SYS_NICS + 1, sizeof(*list));
		for (; *nr < RDMA_SYS_NICS; ++*nr) {
			struct object *o = make(DEVICE, NULL);

			o->nic = &rdma_sys_nics[*nr];
			list[*nr] = o;
		}
	}
	pthread_mutex_unlock(&lock);
	return list;
}

static void free_device_list(void **list)
{
	for (int i = 0; list[i]; i++)
		drop(list[i], DEVICE);
	free(list);
}

static const char *get_device_name(void *device)
{
	return ((struct object *)device)->nic->name;
}

/* A context outlives the list that it came from. */
static void *open_device(void *device)
{
	struct object *made = locked_make(FV_OPEN_DEVICE, CONTEXT, NULL);

	RULE(!((struct object *)device)->dead);
	if (made)
		made->nic = ((struct object *)device)->nic;
	return made;
}

static int close_device(void *context)
{
	return drop(context, CONTEXT);
}

static void *alloc_pd(void *context)
{
	return locked_make(FV_ALLOC_PD, PD, context);
}

static int dealloc_pd(void *pd)
{
	return drop(pd, PD);
}

static int query_port(void *context, uint8_t port,
		      struct cf_ibv_port_attr *attr)
{
	const struct object *o = context;
	bool bad;

	pthread_mutex_lock(&lock);
	bad = fails(FV_QUERY_PORT);
	RULE(port == 1);
	pthread_mutex_unlock(&lock);
	attr->state = o->nic->plugged ? CF_IBV_PORT_ACTIVE : 1;
	attr->active_mtu = MTU;
	attr->lid = o->nic->lid;
	return bad ? 22 : 0;
}

static void *create_cq(void *context, int entries, void *cq_context,
		       void *channel, int vector)
{
	RULE(entries > 0 && !channel && !vector);
	target.entries = entries;
	return locked_make(FV_CREATE_CQ, CQ, context);
}

static int destroy_cq(void *cq)
{
	return drop(cq, CQ);
}

static void *create_srq(void *pd, struct cf_ibv_srq_init_attr *attr)
{
	RULE(attr->max_wr && attr->max_sge);
	return locked_make(FV_CREATE_SRQ, SRQ, pd);
}

static int destroy_srq(void *srq)
{
	return drop(srq, SRQ);
}

static struct cf_ibv_qp *create_qp(void *context,
				   struct cf_ibv_qp_init_attr_ex *attr,
				   struct cf_mlx5dv_qp_init_attr *mlx5)
{
	struct object *o = NULL;

	pthread_mutex_lock(&lock);
	RULE(attr->qp_type == CF_IBV_QPT_DRIVER);
	RULE(attr->comp_mask == CF_IBV_QP_INIT_ATTR_PD && attr->pd);
	RULE(attr->send_cq && attr->recv_cq && attr->srq);
	RULE(mlx5->comp_mask == CF_MLX5DV_QP_INIT_ATTR_MASK_DC);
	RULE(mlx5->dc_type == CF_MLX5DV_DCTYPE_DCT);
	if (!fails(FV_CREATE_QP) &&
	    !strncmp(((struct object *)context)->nic->name, "mlx5_", 5)) {
		o = make(QP, attr->srq);
		o->qp.qp_num = 0x1000 + ++next_key;
		target.key = mlx5->dct_access_key;
	}
	pthread_mutex_unlock(&lock);
	return o ? &o->qp : NULL;
}

/* As the kernel's driver wants it: just these, in this order. */
static int modify_qp(struct cf_ibv_qp *qp, struct cf_ibv_qp_attr *attr,
		     int mask)
{
	struct object *o = (struct object *)qp;
	int to_init = CF_IBV_QP_STATE | CF_IBV_QP_ACCESS_FLAGS |
		      CF_IBV_QP_PKEY_INDEX | CF_IBV_QP_PORT;
	int to_ready = CF_IBV_QP_STATE | CF_IBV_QP_MIN_RNR_TIMER |
		       CF_IBV_QP_AV | CF_IBV_QP_PATH_MTU;
	bool bad;

	pthread_mutex_lock(&lock);
	bad = fails(FV_MODIFY_QP);
	RULE(!o->dead && attr->qp_state == o->state + 1);
	if (!bad && attr->qp_state == CF_IBV_QPS_INIT) {
		RULE(mask == to_init && attr->port_num == 1);
		target.init = *attr;
	} else if (!bad) {
		RULE(mask == to_ready && attr->path_mtu == MTU);
		RULE(attr->ah_attr.is_global && attr->ah_attr.port_num == 1);
		target.ready = *attr;
	}
	if (!bad)
		o->state = attr->qp_state;
	o->access = (int)target.init.qp_access_flags;
	pthread_mutex_unlock(&lock);
	return bad ? 22 : 0;
}

static int destroy_qp(struct cf_ibv_qp *qp)
{
	return drop(qp, QP);
}

/* lock held */
static struct cf_ibv_mr *make_mr(void *pd, uintptr_t addr, size_t length,
				 int access)
{
	struct object *o = make(MR, pd);

	o->mr.addr = (void *)addr;
	o->mr.length = length;
	o->mr.rkey = 0x100 + ++next_key;
	o->mr.lkey = o->mr.rkey + 0x10000;
	o->access = last_access = access;
	return &o->mr;
}

static struct cf_ibv_mr *reg_mr(void *pd, void *addr, size_t length, int access)
{
	struct cf_ibv_mr *mr = NULL;

	pthread_mutex_lock(&lock);
	if (!fails(FV_REG_MR))
		mr = make_mr(pd, (uintptr_t)addr, length, access);
	pthread_mutex_unlock(&lock);
	return mr;
}

static struct cf_ibv_mr *reg_dmabuf_mr(void *pd, uint64_t offset, size_t length,
				       uint64_t iova, int fd, int access)
{
	struct cf_ibv_mr *mr = NULL;

	pthread_mutex_lock(&lock);
	RULE(fcntl(fd, F_GETFD) >= 0);
	RULE((offset & 4095) == (iova & 4095) && offset < 4096);
	if (!fails(FV_REG_DMABUF_MR))
		mr = make_mr(pd, iova, length, access);
	pthread_mutex_unlock(&lock);
	return mr;
}

static int dereg_mr(struct cf_ibv_mr *mr)
{
	return drop(mr, MR);
}

/* ------------------------------------------------------------- the server */

static bool parse(const char *text, int len, struct fake_desc *d)
{
	unsigned present;
	int end = 0;

	if (sscanf(text, "%16lx:%8x:%8x:%4x:%6x:%1u:%n", &d->addr, &d->size,
		   &d->rkey, &d->lid, &d->queue_pair, &present, &end) != 6 ||
	    present != 1 || len != TEXT_SIZE || (int)strlen(text) != len ||
	    end != GID_AT)
		return false;
	for (int i = 0; i < 16; i++)
		if (sscanf(text + end + 2 * i, "%2hhx", &d->gid[i]) != 1)
			return false;
	return true;
}

/* lock held: a target that is ready, where GID and LID lead to its NIC */
static struct object *find_target(const struct fake_desc *d)
{
	for (struct object *o = objects; o; o = o->next)
		if (o->kind == QP && !o->dead && o->state == CF_IBV_QPS_RTR &&
		    o->qp.qp_num == d->queue_pair && o->nic->lid == d->lid &&
		    rdma_sys_has_gid(o->nic, d->gid))
			return o;
	return NULL;
}

/* lock held: of the same NIC, whole, and open to what is done */
static bool has_memory(const struct object *qp, const struct fake_desc *d,
		       int need)
{
	for (struct object *o = objects; o; o = o->next) {
		uintptr_t base = (uintptr_t)o->mr.addr;

		if (o->kind == MR && !o->dead && o->mr.rkey == d->rkey &&
		    o->nic == qp->nic && d->addr >= base &&
		    d->addr + d->size <= base + o->mr.length &&
		    o->access & qp->access & need)
			return true;
	}
	return false;
}

bool fake_server_moves(const char *text, int len, bool to_client, void *bytes,
		       size_t size, struct fake_desc *desc)
{
	int need = to_client ? CF_IBV_ACCESS_REMOTE_WRITE :
			       CF_IBV_ACCESS_REMOTE_READ;
	const struct object *qp;
	bool good;

	if (!parse(text, len, desc) || size > desc->size) {
		print_message("server: %zu bytes by \"%s\"\n", size, text);
		return false;
	}
	pthread_mutex_lock(&lock);
	qp = find_target(desc);
	good = qp && has_memory(qp, desc, need);
	desc->device = qp ? qp->nic->name : NULL;
	pthread_mutex_unlock(&lock);
	if (!good) {
		print_message("server: nobody is at \"%s\"\n", text);
		return false;
	}
	return !(to_client ? th_fake()->write(desc->addr, bytes, size) :
			     th_fake()->read(desc->addr, bytes, size));
}

/* ------------------------------------------------------- begin and look on */

void fake_verbs_begin(void)
{
	table = (struct cf_verbs){
		.get_device_list = get_device_list,
		.free_device_list = free_device_list,
		.get_device_name = get_device_name,
		.open_device = open_device,
		.close_device = close_device,
		.alloc_pd = alloc_pd,
		.dealloc_pd = dealloc_pd,
		.query_port = query_port,
		.create_cq = create_cq,
		.destroy_cq = destroy_cq,
		.create_srq = create_srq,
		.destroy_srq = destroy_srq,
		.create_qp = create_qp,
		.modify_qp = modify_qp,
		.destroy_qp = destroy_qp,
		.reg_mr = reg_mr,
		.dereg_mr = dereg_mr,
		.reg_dmabuf_mr = reg_dmabuf_mr,
	};
	memset(calls, 0, sizeof(calls));
	memset(&plan, 0, sizeof(plan));
	memset(&target, 0, sizeof(target));
	broken = 0;
	rdma_sys_begin();
	cf_verbs_replace(&table);
}

void fake_verbs_end(void)
{
	unsigned live = fake_verbs_live();

	rdma_sys_end();
	cf_verbs_replace(NULL);
	while (objects) {
		struct object *o = objects;

		objects = o->next;
		free(o);
	}
	assert_int_equal(live, 0);
	assert_int_equal(broken, 0);
}

void fake_verbs_fail(enum fake_row row, unsigned nth, bool persist)
{
	pthread_mutex_lock(&lock);
	plan.row = row;
	plan.nth = nth;
	plan.persist = persist;
	pthread_mutex_unlock(&lock);
}

bool fake_verbs_fired(void)
{
	return plan.fired;
}

void fake_verbs_no_dma_buf(void)
{
	table.reg_dmabuf_mr = NULL;
}

unsigned fake_verbs_calls(enum fake_row row)
{
	return calls[row];
}

static unsigned count(enum kind from)
{
	unsigned nr = 0;

	pthread_mutex_lock(&lock);
	for (const struct object *o = objects; o; o = o->next)
		nr += !o->dead && o->kind >= from;
	pthread_mutex_unlock(&lock);
	return nr;
}

unsigned fake_verbs_live(void)
{
	return count(DEVICE);
}

unsigned fake_verbs_live_mrs(void)
{
	return count(MR);
}

int fake_verbs_access(void)
{
	return last_access;
}

struct fake_target fake_verbs_target(void)
{
	return target;
}
