/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * --event uretprobe: how long functions take, from their entry to their return. The stack is that of the call: it is taken as the
 * function has returned, with its registers of then, so that nothing is unwound for calls that are not chosen.
 */
#include "event.h"
#include "value-choice.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

TAKERS(return_takers);

/* A function may call itself. */
struct ef_call_key {
	u64 sp; /* at the entry */
	u64 tid;
};

struct ef_call {
	u64 since_ns;
	u64 pc; /* of the entry */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct ef_call_key);
	__type(value, struct ef_call);
} calls SEC(".maps");

static __always_inline struct ef_call_key call_key(u64 sp)
{
	return (struct ef_call_key){ .sp = sp, .tid = (u32)bpf_get_current_pid_tgid() };
}

SEC("kprobe")
int on_entry(struct ef_user_regs *ctx)
{
	struct ef_call_key key = call_key(USER_SP(ctx));
	struct ef_call call = { .since_ns = bpf_ktime_get_ns(), .pc = USER_PC(ctx) };

	if (is_of_interest())
		bpf_map_update_elem(&calls, &key, &call, BPF_ANY);
	return 0;
}

SEC("kprobe")
int on_return(struct ef_user_regs *ctx)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct ef_call_key key = call_key(SP_AT_ENTRY(USER_SP(ctx)));
	struct ef_call *call = bpf_map_lookup_elem(&calls, &key);

	if (!call) {
		if (is_of_interest())
			count(EF_COUNTER_calls_missed);
		return 0;
	}
	u64 pc = call->pc, ns = now_ns - call->since_ns;
	bpf_map_delete_elem(&calls, &key);
	u32 weight = choose_by_value(ns, now_ns);
	if (!weight || !begin_event_sample(EF_ORIGIN_MAX + config.event.number, weigh(ns, weight)))
		return 0;
	struct ef_scratch *s = get_scratch();
	if (!s)
		return 0;
	__builtin_memcpy(&s->user_regs, ctx, sizeof(s->user_regs));
	USER_PC(&s->user_regs) = pc;
	s->returned_to = USER_PC(ctx);
	bpf_tail_call(ctx, &return_takers, 0);
	return give_event_up();
}

SEC("kprobe")
int take_return(struct ef_user_regs *ctx)
{
	struct ef_scratch *s = go_on_with_sample();
	if (!s)
		return 0;
	take_stacks(ctx, s, &s->user_regs);
	finish_sample(s);
	return 0;
}
