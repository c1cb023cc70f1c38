/* Frames of unusual shape, 20 calls deep: recurse_alloca, recurse_large, recurse_aligned, recurse_array. */
#include <alloca.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

volatile uint64_t sink;

__attribute__((noinline)) void spin(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sink += i * i;
}

__attribute__((noinline)) int recurse_alloca(int depth)
{
	volatile char *room = alloca(depth * 37 + 1);
	room[depth] = 1;
	if (depth == 1)
		spin(2000000);
	else
		sink += recurse_alloca(depth - 1);
	return room[depth];
}

__attribute__((noinline)) int recurse_large(int depth)
{
	volatile char room[100000];
	room[depth * 1000] = 1;
	if (depth == 1)
		spin(2000000);
	else
		sink += recurse_large(depth - 1);
	return room[depth * 1000];
}

__attribute__((noinline)) int recurse_aligned(int depth)
{
	volatile char room[64] __attribute__((aligned(64)));
	room[depth] = 1;
	if (depth == 1)
		spin(2000000);
	else
		sink += recurse_aligned(depth - 1);
	return room[depth];
}

/* aligned, of variable size, and with arguments on the stack: the frame is found through a third register */
__attribute__((noinline)) int recurse_array(int depth, int a, int b, int c, int d, int e, int f, int g)
{
	volatile char aligned[64] __attribute__((aligned(64)));
	volatile char room[depth * 13 + a];
	aligned[depth] = room[depth] = 1;
	if (depth == 1)
		spin(2000000);
	else
		sink += recurse_array(depth - 1, a, b, c, d, e, f, g);
	return aligned[depth] + room[depth] + g;
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "alloca";
	for (;;) {
		if (!strcmp(which, "alloca"))
			recurse_alloca(20);
		else if (!strcmp(which, "large"))
			recurse_large(20);
		else if (!strcmp(which, "aligned"))
			recurse_aligned(20);
		else
			recurse_array(20, argc, 2, 3, 4, 5, 6, 7);
	}
}
