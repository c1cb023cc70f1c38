/* Burns both CPUs from many processes: `spread N DEPTH TOTAL` runs N of TOTAL
 * processes that take turns. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void burn(void) {
  for (unsigned long i = 0; i < 200000; i++)
    sink += i * i;
}

__attribute__((noinline)) static int recurse(int depth) {
  volatile char frame[64];

  frame[depth % 64] = depth;
  if (depth == 0)
    burn();
  else
    recurse(depth - 1);
  return frame[depth % 64];
}

int main(int argc, char **argv) {
  int processes = argc > 1 ? atoi(argv[1]) : 1;
  int depth = argc > 2 ? atoi(argv[2]) : 10;
  int total = argc > 3 ? atoi(argv[3]) : processes;
  /* so that all of them together keep two CPUs busy: a turn is some 0.2 ms */
  struct timespec pause = {0, 0};
  long pause_ns = 100000L * total;

  pause.tv_sec = pause_ns / 1000000000L;
  pause.tv_nsec = pause_ns % 1000000000L;
  for (int i = 1; i < processes; i++) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      break;
    }
  }
  for (;;) {
    recurse(depth);
    if (total > 2)
      nanosleep(&pause, NULL);
  }
}
