/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Runs the unwinders over a captured process. The case comes on stdin, a line
 * each, numbers in hexadecimal:
 *
 *   config MAX_USER_FRAMES RUNTIMES           bits of enum ef_runtime
 *   registers R0..R15 RIP THREAD_POINTER      by DWARF number
 *   mapping START END DELTA KEY               executable; key 0: no file
 *   mapping START END DELTA KEY jit           the same without a file; the key
 *                                             is that of its table
 *   entry MAP KEY VALUE                       both as bytes
 *   block TABLE INDEX BYTES                   of an unwind table; missing bytes
 *                                             at its end are 0
 *   memory ADDRESS BYTES
 *
 * Usage:
 *
 *   unwinders run         prints the stack, the number of reads, the counters
 *   unwinders fail        the same once for each read, with that read failing
 *   unwinders hostile N   the same N times; one read in eight is falsified
 *   unwinders live PID    takes registers and memory from a stopped process, and
 *                         prints what it used of them before the stack: the
 *                         lines `registers`, `used-memory`, `used-block` and
 *                         `used-mapping`
 */
#include "unwinders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define TGID 4242
/* No stack may cost more reads than this, whatever its memory says: 1,023
 * frames, each with a run of look-ups. */
#define MOST_READS 65536
#define MOST_MAPPINGS 4096
#define MOST_TABLES 1024

static void fail(const char *what, const char *detail)
{
	fprintf(stderr, "unwinders: %s: %s\n", what, detail);
	exit(2);
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);
	if (!memory)
		fail("no memory", "calloc");
	return memory;
}

/* --- Maps: a list of entries each, every value an allocation of its own
 * --------------------------------------- */

struct entry {
	struct entry *next;
	void *key, *value;
};
static struct entry *entries[64];

struct table {
	uint32_t blocks;
	uint8_t **block;
	bool *is_used;
};
static struct table tables[MOST_TABLES];

static void *look_up(size_t map, const void *key)
{
	for (struct entry *e = entries[map]; e; e = e->next)
		if (!memcmp(e->key, key, unwinder_maps[map].key_bytes))
			return e->value;
	return NULL;
}

static void *add(size_t map, const void *key)
{
	struct entry *e = allocate(1, sizeof(*e));
	e->key = memcpy(allocate(1, unwinder_maps[map].key_bytes), key, unwinder_maps[map].key_bytes);
	e->value = allocate(1, unwinder_maps[map].value_bytes);
	e->next = entries[map];
	entries[map] = e;
	return e->value;
}

static size_t map_by_name(const char *name)
{
	for (size_t i = 0; i < unwinder_map_count; i++)
		if (!strcmp(unwinder_maps[i].name, name))
			return i;
	fail("no such map", name);
	return 0;
}

static size_t map_by_id(const void *id)
{
	for (size_t i = 0; i < unwinder_map_count; i++)
		if (unwinder_maps[i].id == id)
			return i;
	fail("a look-up in a map that is not listed", "unwinder_maps");
	return 0;
}

/* Arrays have all their elements from the start. */
static bool is_array(const char *name)
{
	return !strcmp(name, "scratch") || !strcmp(name, "counters") || !strcmp(name, "found_rules");
}

void *host_map_lookup(void *id, const void *key)
{
	uint32_t index = *(const uint32_t *)key;
	struct table *table = id;

	if ((uintptr_t)id - (uintptr_t)tables < sizeof(tables)) {
		if (index >= table->blocks)
			return NULL;
		table->is_used[index] = true;
		return table->block[index];
	}
	size_t map = map_by_id(id);
	if (!strcmp(unwinder_maps[map].name, "tables"))
		return index < MOST_TABLES && tables[index].blocks ? &tables[index] : NULL;
	void *value = look_up(map, key);
	return value || !is_array(unwinder_maps[map].name) ? value : add(map, key);
}

long host_map_update(void *id, const void *key, const void *value)
{
	size_t map = map_by_id(id);
	void *place = look_up(map, key);
	memcpy(place ? place : add(map, key), value, unwinder_maps[map].value_bytes);
	return 0;
}

static void forget(const char *name)
{
	struct entry *e = entries[map_by_name(name)];
	entries[map_by_name(name)] = NULL;
	while (e) {
		struct entry *next = e->next;
		free(e->key);
		free(e->value);
		free(e);
		e = next;
	}
}

/* --- Memory of the process
 * ------------------------------------------------------------------------------------
 */

struct piece {
	uint64_t start, length;
	uint8_t *bytes;
};
static struct piece *pieces;
static size_t piece_count;
static int live = -1;

static uint64_t reads, failing_read;
static bool is_hostile;
static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

static bool read_captured(void *dst, uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < piece_count; i++) {
		struct piece *p = &pieces[i];
		if (address - p->start >= p->length || p->length - (address - p->start) < size)
			continue;
		memcpy(dst, p->bytes + (address - p->start), size);
		return true;
	}
	return false;
}

/* What a program could put there to mislead: a bit turned over, a small number,
 * a pointer to elsewhere, noise. */
static void falsify(uint8_t *bytes, uint32_t size)
{
	uint64_t word = next_random();
	switch (word >> 61) {
	case 0:
		bytes[word % size] ^= 1 << (word >> 32 & 7);
		break;
	case 1:
		memset(bytes, 0, size);
		break;
	case 2:
		memset(bytes, 0xff, size);
		break;
	case 3:
		bytes[0] += 1 + (word >> 32 & 15);
		break;
	case 4: {
		const struct piece *p = &pieces[word % piece_count];
		uint64_t pointer = p->start + (next_random() % p->length & ~7ULL);
		memcpy(bytes, &pointer, size < 8 ? size : 8);
		break;
	}
	default:
		for (uint32_t i = 0; i < size; i++)
			bytes[i] = next_random();
	}
}

long bpf_probe_read_user(void *dst, uint32_t size, const void *address)
{
	uint64_t at = (uint64_t)address;
	bool is_read = ++reads != failing_read;

	if (reads > MOST_READS)
		fail("the stack costs too many reads", "MOST_READS");
	if (is_read && live >= 0) {
		is_read = pread(live, dst, size, (off_t)at) == (ssize_t)size;
		if (is_read)
			printf("used-memory %lx %x\n", at, size);
	} else if (is_read) {
		is_read = read_captured(dst, at, size);
	}
	if (!is_read) {
		memset(dst, 0, size);
		return -EFAULT;
	}
	if (is_hostile && size && !(next_random() & 7))
		falsify(dst, size);
	return 0;
}

static struct host_mapping mappings[MOST_MAPPINGS];
static size_t mapping_count;

const struct host_mapping *find_host_mapping(uint64_t address)
{
	for (size_t i = 0; i < mapping_count; i++) {
		struct host_mapping *m = &mappings[i];
		if (address < m->start || address >= m->end)
			continue;
		if (live >= 0)
			printf("used-mapping %lx %lx %lx %lx\n", m->start, m->end, m->delta, m->key);
		return m;
	}
	return NULL;
}

/* --- The case
 * -------------------------------------------------------------------------------------------------
 */

static uint64_t registers[REGISTERS + 1];

static uint64_t number(char **at)
{
	char *end;
	errno = 0;
	uint64_t value = strtoull(*at, &end, 16);
	if (end == *at || errno)
		fail("not a number", *at);
	*at = end;
	return value;
}

/* A word of the line, in place. */
static char *word(char **at)
{
	char *begin = *at + strspn(*at, " ");
	size_t length = strcspn(begin, " \n");
	*at = begin + length + (begin[length] != 0);
	begin[length] = 0;
	return begin;
}

/* Exactly `size` bytes: `text` may have fewer, the rest is 0. */
static uint8_t *bytes_of(const char *text, size_t size)
{
	uint8_t *bytes = allocate(1, size);
	size_t given = strlen(text) / 2;
	if (given > size)
		fail("too many bytes", text);
	for (size_t i = 0; i < given; i++)
		if (sscanf(text + 2 * i, "%2hhx", &bytes[i]) != 1)
			fail("not bytes", text);
	return bytes;
}

static void read_entry(char *at)
{
	size_t map = map_by_name(word(&at));
	uint8_t *key = bytes_of(word(&at), unwinder_maps[map].key_bytes);
	uint8_t *value = bytes_of(word(&at), unwinder_maps[map].value_bytes);
	host_map_update((void *)unwinder_maps[map].id, key, value);
	free(key);
	free(value);
}

static void read_block(char *at)
{
	uint64_t id = number(&at), index = number(&at);
	if (id >= MOST_TABLES || index > 1 << 20)
		fail("no such block", at);
	struct table *table = &tables[id];
	if (index >= table->blocks) {
		table->block = realloc(table->block, (index + 1) * sizeof(*table->block));
		table->is_used = realloc(table->is_used, (index + 1) * sizeof(*table->is_used));
		if (!table->block || !table->is_used)
			fail("no memory", "realloc");
		memset(table->block + table->blocks, 0, (index + 1 - table->blocks) * sizeof(*table->block));
		memset(table->is_used + table->blocks, 0, (index + 1 - table->blocks) * sizeof(*table->is_used));
		table->blocks = index + 1;
	}
	table->block[index] = bytes_of(word(&at), block_bytes);
}

static void read_memory(char *at)
{
	uint64_t start = number(&at);
	const char *text = word(&at);
	size_t length = strlen(text) / 2;
	pieces = realloc(pieces, (piece_count + 1) * sizeof(*pieces));
	if (!pieces || !length)
		fail("no memory", "realloc");
	pieces[piece_count++] = (struct piece){ start, length, bytes_of(text, length) };
}

static void read_line(char *line)
{
	char *at = line;
	const char *what = word(&at);

	if (!strcmp(what, "config")) {
		uint32_t most = number(&at);
		configure(most, number(&at));
	} else if (!strcmp(what, "registers")) {
		for (int i = 0; i <= REGISTERS; i++)
			registers[i] = number(&at);
	} else if (!strcmp(what, "mapping")) {
		if (mapping_count == MOST_MAPPINGS)
			fail("too many mappings", line);
		struct host_mapping *m = &mappings[mapping_count++];
		m->start = number(&at);
		m->end = number(&at);
		m->delta = number(&at);
		m->key = number(&at);
		m->is_jit = !strcmp(word(&at), "jit");
	} else if (!strcmp(what, "entry")) {
		read_entry(at);
	} else if (!strcmp(what, "block")) {
		read_block(at);
	} else if (!strcmp(what, "memory")) {
		read_memory(at);
	} else if (*what && *what != '#') {
		fail("not a line of a case", what);
	}
}

static void read_registers(int pid)
{
	struct user_regs_struct r;
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0) ||
	    waitpid(pid, NULL, __WALL) < 0 || ptrace(PTRACE_GETREGS, pid, 0, &r) ||
	    ptrace(PTRACE_DETACH, pid, 0, 0))
		fail("no registers of the process", strerror(errno));
	const uint64_t values[] = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
				    r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip, r.fs_base };
	memcpy(registers, values, sizeof(values));
	printf("registers");
	for (int i = 0; i <= REGISTERS; i++)
		printf(" %lx", registers[i]);
	printf("\n");
}

/* --- Runs
 * -----------------------------------------------------------------------------------------------------
 */

static void run_once(bool is_quiet)
{
	static uint64_t ktime_ns = 1000000000;

	reads = 0;
	forget("counters");
	struct unwound u = unwind(registers, registers[THREAD_POINTER], TGID, ktime_ns++);
	if (is_quiet)
		return;
	printf("stack reads %lx frames %x marker %x words", reads, u.user_frames, u.marker);
	for (uint32_t i = 0; i < u.word_count; i++)
		printf(" %lx", u.words[i]);
	printf(" counters");
	for (uint32_t i = 0; i < counter_count; i++) {
		uint64_t *value = look_up(map_by_name("counters"), &i);
		if (value)
			printf(" %s=%lx", counter_names[i], *value);
	}
	printf("\n");
}

static void print_used_blocks(void)
{
	for (size_t t = 0; t < MOST_TABLES; t++)
		for (size_t b = 0; b < tables[t].blocks; b++)
			if (tables[t].is_used[b])
				printf("used-block %zx %zx\n", t, b);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long argument = argc > 2 ? atol(argv[2]) : 0;
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0)
		read_line(line);
	free(line);
	if (!strcmp(mode, "live")) {
		char path[32];
		snprintf(path, sizeof(path), "/proc/%ld/mem", argument);
		read_registers(argument);
		live = open(path, O_RDONLY);
		if (live < 0)
			fail(path, strerror(errno));
		run_once(true);
		run_once(false);
		print_used_blocks();
		return 0;
	}
	/* a process is known to have V8 from the second stack on */
	run_once(true);
	run_once(false);
	uint64_t all = reads;
	if (!strcmp(mode, "fail")) {
		for (failing_read = 1; failing_read <= all; failing_read++)
			run_once(false);
	} else if (!strcmp(mode, "hostile")) {
		is_hostile = true;
		for (long i = 1; i <= argument; i++) {
			random_state = 0x9e3779b97f4a7c15ULL * i;
			run_once(false);
		}
	} else if (strcmp(mode, "run")) {
		fail("no such mode", mode);
	}
	return 0;
}
