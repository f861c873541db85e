// SPDX-License-Identifier: Apache-2.0
/*
 * The NICs of rdma_dev_addr_list: how they are found and opened, which one
 * is described, and what becomes of requests when any call to them fails.
 */
#include <errno.h>
#include <string.h>
#include "store.h"

#define SIZE (TH_MIB + 5)
#define ALL "\"10.0.0.1\", \"10.0.0.2\", \"10.0.0.3\""

static void a_nic_is_named_by_address_or_name(void **state)
{
	static const struct {
		const char *name, *gid; /* how the GID ends */
	} nics[] = {
		{ "\"10.0.0.1\"", "\x0a\x00\x00\x01" },
		{ "\"fd00::1\"", "\x00\x00\x00\x01" },
		{ "\"mlx5_0\"", "\x0a\x00\x00\x01" },
		{ "\"10.0.0.2\"", "\x0a\x00\x00\x02" },
		{ "\"mlx5_2\"", "\x0a\x00\x00\x03" },
	};

	for (int i = 0; i < 5; i++) {
		struct rig r;

		store_begin(&r.s, SIZE);
		rig_begin(&r, nics[i].name, "");
		store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
		assert_int_equal(r.s.by_host, 0);
		assert_memory_equal(r.s.last.gid + 12, nics[i].gid, 4);
		/* RoCE v2, where there are two of one address */
		if (!i)
			assert_int_equal(
				fake_verbs_target().ready.ah_attr.sgid_index,
				2);
		rig_end(&r);
	}
}

static void a_nic_that_cannot_be_used_is_left_out(void **state)
{
	static const char *const nics[] = {
		"\"10.9.9.9\"", /* nobody's */
		"\"10.0.0.4\"", /* no dynamic connections */
		"\"10.0.0.9\"", /* no cable */
		"\"mlx5\"",	/* a part of a name */
		"\"\"",		"\"300.1.2.3\"",
	};
	char two[64];

	for (int i = 0; i < 6; i++) {
		struct rig r;
		const char *why;

		store_begin(&r.s, SIZE);
		rig_begin(&r, nics[i], "");
		assert_string_equal(store_path(r.fh, r.mem.ptr, 9, &why),
				    "staged");
		store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
		rig_end(&r);
		/* and another one beside it is used */
		snprintf(two, sizeof(two), "%s, \"10.0.0.2\"", nics[i]);
		store_begin(&r.s, SIZE);
		rig_begin(&r, two, "");
		store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
		assert_int_equal(r.s.by_host, 0);
		rig_end(&r);
	}
}

static void configuration_reaches_the_nic(void **state)
{
	struct fake_target t;
	struct rig r;

	setenv("CUFILE_RDMA_PKEY_INDEX", "3", 1);
	setenv("CUFILE_RDMA_HOP_LIMIT", "9", 1);
	setenv("CUFILE_MIN_RNR_TIMER", "12", 1);
	setenv("CUFILE_CQ_DEPTH", "512", 1);
	store_begin(&r.s, SIZE);
	rig_begin(&r, "\"10.0.0.1\"",
		  ", \"rdma_dc_key\": \"0x1234abcd\","
		  " \"rdma_access_mask\": \"0x7\","
		  " \"rdma_transport_type\": \"DC_V1\"");
	unsetenv("CUFILE_RDMA_PKEY_INDEX");
	unsetenv("CUFILE_RDMA_HOP_LIMIT");
	unsetenv("CUFILE_MIN_RNR_TIMER");
	unsetenv("CUFILE_CQ_DEPTH");
	t = fake_verbs_target();
	assert_int_equal(t.key, 0x1234abcd);
	assert_int_equal(t.entries, 512);
	assert_int_equal(t.init.pkey_index, 3);
	assert_int_equal(t.ready.ah_attr.hop_limit, 9);
	assert_int_equal(t.ready.min_rnr_timer, 12);
	assert_int_equal(fake_verbs_access(), 7);
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	/* a client may ask for relaxed ordering of its own */
	assert_int_equal(cuFileBufDeregister(r.mem.ptr).err, 0);
	assert_int_equal(cuFileBufRegister(r.mem.ptr, SIZE,
					   CU_FILE_RDMA_RELAXED_ORDERING)
				 .err,
			 0);
	assert_int_equal(fake_verbs_access(),
			 7 | CF_IBV_ACCESS_RELAXED_ORDERING);
	rig_end(&r);
	store_begin(&r.s, SIZE);
	rig_begin(&r, "\"10.0.0.1\"", "");
	assert_int_equal(fake_verbs_target().key, 0xffeeddcc);
	assert_int_equal(fake_verbs_access(),
			 0xf | CF_IBV_ACCESS_RELAXED_ORDERING);
	rig_end(&r);
}

static void a_transport_that_is_not_known_is_none(void **state)
{
	struct rig r;
	const char *why;

	store_begin(&r.s, SIZE);
	rig_begin(&r, ALL, ", \"rdma_transport_type\": \"EXT_RC_V1\"");
	assert_string_equal(store_path(r.fh, r.mem.ptr, 9, &why), "staged");
	assert_int_equal(fake_verbs_calls(FV_OPEN_DEVICE), 0);
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	rig_end(&r);
}

static void memory_is_registered_as_the_peer_type_says(void **state)
{
	static const struct {
		const char *more;
		bool dma_buf, address;
	} peers[] = {
		{ "", true, false },
		{ ", \"rdma_peer_type\": \"dmabuf\"", true, false },
		{ ", \"rdma_peer_type\": \"peer_mem\"", false, true },
		{ ", \"rdma_peer_type\": \"nvidia_peermem\"", false, true },
	};

	for (int i = 0; i < 4; i++) {
		unsigned by_buf = fake_verbs_calls(FV_REG_DMABUF_MR);
		unsigned by_address = fake_verbs_calls(FV_REG_MR);
		struct rig r;

		store_begin(&r.s, SIZE);
		rig_begin(&r, "\"10.0.0.1\"", peers[i].more);
		assert_int_equal(fake_verbs_calls(FV_REG_DMABUF_MR) - by_buf,
				 peers[i].dma_buf);
		assert_int_equal(fake_verbs_calls(FV_REG_MR) - by_address,
				 peers[i].address);
		store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
		assert_int_equal(r.s.by_host, 0);
		rig_end(&r);
	}
}

static void an_old_library_registers_by_address(void **state)
{
	struct rig r;

	fake_verbs_no_dma_buf();
	store_begin(&r.s, SIZE);
	rig_begin(&r, "\"10.0.0.1\"", "");
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	assert_int_equal(fake_verbs_calls(FV_REG_MR), 1);
	assert_int_equal(r.s.by_host, 0);
	rig_end(&r);
	/* and not at all, where that is not wanted */
	store_begin(&r.s, SIZE);
	rig_begin(&r, "\"10.0.0.1\"", ", \"rdma_peer_type\": \"dmabuf\"");
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	assert_int_equal(fake_verbs_calls(FV_REG_MR), 1);
	assert_int_equal(r.s.by_rdma, 0);
	rig_end(&r);
}

static void the_file_system_says_which_addresses(void **state)
{
	const char *why;
	struct rig r;

	store_begin(&r.s, SIZE);
	r.s.hosts[0] = "10.0.0.77";
	r.s.hosts[1] = "10.0.0.2";
	rig_begin(&r, ALL, "");
	for (int i = 0; i < 6; i++)
		store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	assert_int_equal(r.s.hosts_asked, 1);
	assert_true(r.s.used[1] >= 6);
	assert_int_equal(r.s.used[0] + r.s.used[2] + r.s.by_host, 0);
	rig_end(&r);
	/* others only, or an error: none */
	for (int nr = -5; nr <= 0; nr += 5) {
		store_begin(&r.s, SIZE);
		r.s.hosts[0] = nr ? NULL : "10.0.0.77";
		r.s.nr_hosts = nr;
		rig_begin(&r, ALL, "");
		assert_string_equal(store_path(r.fh, r.mem.ptr, 9, &why),
				    "staged");
		assert_non_null(strstr(why, "allows none"));
		store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
		assert_int_equal(r.s.by_rdma, 0);
		rig_end(&r);
	}
}

static void the_nearest_nic_is_taken_and_equals_take_turns(void **state)
{
	struct rig r;

	store_begin(&r.s, SIZE);
	rig_begin(&r, "\"10.0.0.3\", \"10.0.0.1\", \"10.0.0.2\"", "");
	for (int i = 0; i < 4; i++)
		store_check_read(&r.s, r.fh, &r.mem, 4096, 0, 0, 4096);
	assert_int_equal(r.s.used[0], 4);
	rig_end(&r);
	store_begin(&r.s, SIZE);
	rig_begin(&r, "\"10.0.0.3\", \"10.0.0.2\"", "");
	for (int i = 0; i < 6; i++)
		store_check_read(&r.s, r.fh, &r.mem, 4096, 0, 0, 4096);
	assert_int_equal(r.s.used[1], 3);
	assert_int_equal(r.s.used[2], 3);
	rig_end(&r);
}

static void the_file_systems_priority_comes_first(void **state)
{
	struct rig r;

	store_begin(&r.s, SIZE);
	r.s.priorities[1] = 5; /* of 10.0.0.2, which is far */
	r.s.priorities[2] = 4;
	rig_begin(&r, ALL, "");
	store_check_read(&r.s, r.fh, &r.mem, 4096, 0, 0, 4096);
	assert_int_equal(r.s.used[1], 1);
	r.s.priorities[2] = 6;
	store_check_write(&r.s, r.fh, &r.mem, 4096, 0, 0, 4096);
	assert_int_equal(r.s.used[2], 1);
	memset(r.s.priorities, 0, sizeof(r.s.priorities));
	store_check_read(&r.s, r.fh, &r.mem, 4096, 0, 0, 4096);
	assert_int_equal(r.s.used[0], 1);
	assert_int_equal(r.s.priorities_asked, 9);
	rig_end(&r);
}

/* A life in which one call, or all from one on, fail. */
static bool live(enum fake_row row, unsigned nth, bool persist)
{
	unsigned fds = (unsigned)th_count_fds();
	bool fired;
	struct rig r;

	fake_verbs_begin();
	fake_verbs_fail(row, nth, persist);
	store_begin(&r.s, SIZE);
	rig_begin(&r, ALL, "");
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	store_check_write(&r.s, r.fh, &r.mem, SIZE - 9, 9, 3, SIZE - 9);
	fired = fake_verbs_fired();
	rig_end(&r);
	fake_verbs_end();
	assert_in_range(th_count_fds(), 0, fds + 2);
	return fired;
}

static void any_call_may_fail(void **state)
{
	unsigned failures = 0;

	(void)th_need_fake();
	for (int row = 0; row < FV_NR_ROWS; row++)
		for (int persist = 0; persist < 2; persist++)
			for (unsigned nth = 1;
			     live((enum fake_row)row, nth, persist); nth++)
				failures++;
	print_message("%u failures\n", failures);
	assert_true(failures > 40);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_nic_is_named_by_address_or_name),
		TEST(a_nic_that_cannot_be_used_is_left_out),
		TEST(configuration_reaches_the_nic),
		TEST(a_transport_that_is_not_known_is_none),
		TEST(memory_is_registered_as_the_peer_type_says),
		TEST(an_old_library_registers_by_address),
		TEST(the_file_system_says_which_addresses),
		TEST(the_nearest_nic_is_taken_and_equals_take_turns),
		TEST(the_file_systems_priority_comes_first),
		cmocka_unit_test(any_call_may_fail),
	};

	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("rdma_nics", tests, NULL, NULL));
}
