/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Any event as a source of samples, with --event: an object for each of them, loaded only then. The program that is
 * attached counts the event and chooses; what takes the stack is another, which it jumps to, and which is replaced as the
 * sampler is. There is one of these for each type of program, since none jumps to one of another type.
 */
#include "event.h"
#include "event-choice.h"
#include "value-choice.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

TAKERS(perf_takers);
TAKERS(probe_takers);
TAKERS(point_takers);

static __always_inline bool is_as_filtered(s64 field)
{
	s64 operand = config.event.operand;

	switch (config.event.comparison) {
	case EF_EVENT_EQUAL:
		return field == operand;
	case EF_EVENT_NOT_EQUAL:
		return field != operand;
	case EF_EVENT_LESS:
		return field < operand;
	case EF_EVENT_GREATER:
		return field > operand;
	}
	return 1;
}

static __always_inline u64 narrow(u64 word, const volatile struct ef_event_field *field)
{
	u32 unused = 64 - 8 * (field->size & 15);

	if (!field->size || field->size >= 8)
		return word;
	return field->is_signed ? (u64)((s64)(word << unused) >> unused) : word << unused >> unused;
}

/* Reads the field of the argument `word`; false where it can't be read. */
static __always_inline bool read_field(u64 word, const volatile struct ef_event_field *field, u64 *value)
{
	if (field->kind == EF_EVENT_FIELD_MEMBER &&
	    (!word || KERNEL_READ(&word, sizeof(word), word + field->offset))) {
		count(EF_COUNTER_events_value_failed);
		return 0;
	}
	*value = narrow(word, field);
	return 1;
}

/* Begins a sample of the event; the program that is jumped to finishes it. */
static __always_inline bool begin_event(u64 value)
{
	if (!is_valid_value(value))
		return 0;
	u32 weight = is_of_interest() ? choose_event(value, bpf_ktime_get_ns()) : 0;

	return weight && begin_event_sample(EF_ORIGIN_MAX + config.event.number, weigh(value, weight));
}

/* Events of software and of the processor's counters. */
SEC("perf_event")
int on_perf_event(struct bpf_perf_event_data *ctx)
{
	if (!begin_event(ctx->sample_period))
		return 0;
	bpf_tail_call(ctx, &perf_takers, 0);
	return give_event_up();
}

SEC("perf_event")
int take_perf_event(struct bpf_perf_event_data *ctx)
{
	struct ef_scratch *s = go_on_with_sample();
	if (!s)
		return 0;
	take_stacks(ctx, s, &ctx->regs);
	finish_sample(s);
	return 0;
}

/* Each register is read by an instruction of its own: clang would add to the pointer, which the verifier refuses. */
#define USER_REGISTER(number, member) \
	case number: \
		asm volatile("%0 = *(u64 *)(%1 + %2)" \
			     : "=r"(word) \
			     : "r"(ctx), "i"(offsetof(struct ef_user_regs, member))); \
		break

static __always_inline u64 user_register(const struct ef_user_regs *ctx, u32 number)
{
	u64 word = 0;

	switch (number) {
		FOR_EACH_USER_REGISTER(USER_REGISTER);
	}
	return word;
}

/* False where it can't be read. */
static __always_inline bool read_user_field(const struct ef_user_regs *ctx,
					    const volatile struct ef_event_field *field, u64 *value)
{
	u64 word = field->offset, at;

	switch (field->kind) {
	case EF_EVENT_FIELD_REGISTER:
		word = user_register(ctx, field->argument) >> (field->offset & 63);
		break;
	case EF_EVENT_FIELD_MEMORY:
		at = word + user_register(ctx, field->argument) + user_register(ctx, field->index) * field->scale;
		word = 0;
		if (read_or_count(&word, (field->size & 7) ?: 8, at, EF_COUNTER_events_value_failed))
			return 0;
	}
	*value = narrow(word, field);
	return 1;
}

/* A place in user code. */
SEC("kprobe")
int on_probe(struct ef_user_regs *ctx)
{
	const volatile struct ef_event *e = &config.event;
	u64 filtered = 0, value = 1;

	if (e->comparison && (!read_user_field(ctx, &e->filter, &filtered) || !is_as_filtered(filtered)))
		return 0;
	if (e->value.kind && !read_user_field(ctx, &e->value, &value))
		return 0;
	if (!begin_event(value))
		return 0;
	bpf_tail_call(ctx, &probe_takers, 0);
	return give_event_up();
}

SEC("kprobe")
int take_probe(struct ef_user_regs *ctx)
{
	struct ef_scratch *s = go_on_with_sample();
	if (!s)
		return 0;
	take_stacks(ctx, s, ctx);
	finish_sample(s);
	return 0;
}

/* As USER_REGISTER. */
#define ARGUMENT(number, offset) \
	case number: \
		asm volatile("%0 = *(u64 *)(%1 + " #offset ")" : "=r"(word) : "r"(ctx)); \
		return word

static __always_inline u64 argument_of(const struct bpf_raw_tracepoint_args *ctx, u32 number)
{
	u64 word = 0;

	switch (number) {
		ARGUMENT(0, 0);
		ARGUMENT(1, 8);
		ARGUMENT(2, 16);
		ARGUMENT(3, 24);
		ARGUMENT(4, 32);
		ARGUMENT(5, 40);
		ARGUMENT(6, 48);
		ARGUMENT(7, 56);
	}
	return word;
}

/* Frames of BPF stand before the kernel's own, how many depends on the kernel and on what else is attached. */
#define MAX_FRAMES_OF_BPF 8

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EF_MAX_EVENTS);
	__type(key, u32);
	__type(value, struct ef_event_caller);
} event_callers SEC(".maps");

/* How many frames stand before it. */
static __always_inline u64 find_caller(const struct ef_scratch *s)
{
	u32 number = s->sample.origin - EF_ORIGIN_MAX;
	const struct ef_event_caller *caller = bpf_map_lookup_elem(&event_callers, &number);

	if (!caller)
		return 0;
#pragma unroll
	for (u32 i = 0; i < MAX_FRAMES_OF_BPF; i++)
		if (s->trace.frames[i] >= caller->start && s->trace.frames[i] < caller->end)
			return i + 1;
	return 0;
}

/* From what calls the listeners of the tracepoint on. */
static __always_inline void take_kernel_stack_of_point(void *ctx, struct ef_scratch *s)
{
	u32 frames = get_kernel_stack(ctx, s, 0);
	u64 before = find_caller(s);

	if (before)
		frames = get_kernel_stack(ctx, s, before & 0xff);
	begin_with_kernel_frames(s, frames);
}

SEC("raw_tp")
int on_tracepoint(struct bpf_raw_tracepoint_args *ctx)
{
	const volatile struct ef_event *e = &config.event;
	u64 filtered = 0, value = 1;

	if (e->comparison && (!read_field(argument_of(ctx, e->filter.argument), &e->filter, &filtered) ||
			      !is_as_filtered(filtered)))
		return 0;
	if (e->value.kind && !read_field(argument_of(ctx, e->value.argument), &e->value, &value))
		return 0;
	if (!begin_event(value))
		return 0;
	bpf_tail_call(ctx, &point_takers, 0);
	return give_event_up();
}

/* include/uapi/asm-generic/mman-common.h */
#define MAP_ANONYMOUS 0x20

static __always_inline u64 excess(u64 wanted, u64 had)
{
	return wanted > had ? wanted - had : 0;
}

/* Bytes that the system call asks for as the program's own memory. Memory that can't be touched is a reservation: none. */
static __always_inline u64 asked_growth(const struct ef_user_regs *regs, long number)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	switch (number) {
	case SYSCALL_MMAP:
		return SYSCALL_ARGUMENT_3(regs) & MAP_ANONYMOUS && USER_ARGUMENT_2(regs) ? USER_ARGUMENT_1(regs) :
											   0;
	case SYSCALL_MREMAP:
		return excess(USER_ARGUMENT_2(regs), USER_ARGUMENT_1(regs));
	case SYSCALL_BRK:
		return excess(USER_ARGUMENT_0(regs),
			      KERNEL_WORD(KERNEL_FIELD(task, task_struct, mm), mm_struct, brk));
	}
	return 0;
}

/* struct pt_regs *regs, long id: at sys_enter, of each system call there is */
SEC("raw_tp")
int on_mmap(struct bpf_raw_tracepoint_args *ctx)
{
	struct ef_user_regs regs;
	long number = ctx->args[1];

	if (number != SYSCALL_MMAP && number != SYSCALL_MREMAP && number != SYSCALL_BRK)
		return 0;
	if (!is_of_interest() || KERNEL_READ(&regs, sizeof(regs), ctx->args[0]) ||
	    is_32_bit(PROCESSOR_MODE(&regs)))
		return 0;
	u64 bytes = asked_growth(&regs, number);
	if (!bytes)
		return 0;
	u32 weight = choose_by_value(bytes, bpf_ktime_get_ns());
	if (!weight || !begin_event_sample(EF_ORIGIN_MAX + config.event.number, weigh(bytes, weight)))
		return 0;
	bpf_tail_call(ctx, &point_takers, 0);
	return give_event_up();
}

SEC("raw_tp")
int take_tracepoint(struct bpf_raw_tracepoint_args *ctx)
{
	struct ef_scratch *s = go_on_with_sample();
	if (!s)
		return 0;
	s->state.mode = KERNEL_MODE;
	take_kernel_stack_of_point(ctx, s);
	take_user_stack(s, NULL, (void *)bpf_get_current_task());
	finish_sample(s);
	return 0;
}
