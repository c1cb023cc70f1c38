/* cold: the recursion goes through code that the compiler moved to .text.unlikely. end: calls that never return are
 * the last instructions of their functions, so that the return address belongs to the next one. */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

volatile uint64_t sink;
static jmp_buf out;

__attribute__((noinline)) void spin(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sink += i * i;
}

__attribute__((noinline, cold)) int unlikely(int depth);

__attribute__((noinline)) int recurse(int depth)
{
	volatile char room[40];
	room[depth] = 1;
	if (__builtin_expect(depth > 0, 0)) {
		sink += unlikely(depth);
		sink += room[depth];
		return 3;
	}
	spin(2000000);
	return room[depth];
}

int unlikely(int depth)
{
	volatile char room[24];
	room[depth] = 1;
	return recurse(depth - 1) + room[depth];
}

__attribute__((noinline, noreturn)) void give_up(void)
{
	spin(2000000);
	longjmp(out, 1);
}

__attribute__((noinline, noreturn)) void last(int depth)
{
	if (depth == 0)
		give_up();
	last(depth - 1 + (int)(sink & 0) * 2);
}

__attribute__((noinline, noreturn)) void last_of_all(void)
{
	give_up();
}

__attribute__((noinline)) int has_end(int depth)
{
	if (depth)
		last_of_all();
	return depth;
}

int main(int argc, char **argv)
{
	int cold = argc > 1 && !strcmp(argv[1], "cold");
	for (;;) {
		if (cold)
			sink += recurse(12);
		else if (!setjmp(out))
			sink += has_end(argc);
	}
}
