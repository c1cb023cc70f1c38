/* main, by_push, through_register, by_register, through_other_stack, by_other_stack, through_state, by_state, spin. */
#include <stdint.h>

volatile uint64_t sink;

void by_push(uint64_t, void (*)(uint64_t));
void by_register(uint64_t, void (*)(uint64_t));
void by_other_stack(uint64_t, void (*)(uint64_t));
void by_state(uint64_t, void (*)(uint64_t));

__attribute__((noinline)) void spin(uint64_t n)
{
	for (uint64_t i = 0; i < 2000000; i++)
		sink += i * n;
}

static void through_state(uint64_t n)
{
	by_state(n | 1, spin);
	sink++;
}

static void through_other_stack(uint64_t n)
{
	by_other_stack(n, through_state);
	sink++;
}

static void through_register(uint64_t n)
{
	by_register(n + 500, through_other_stack);
	sink++;
}

int main(void)
{
	for (;;)
		by_push(3, through_register);
}
