/* Starts so many processes a second, each of which runs another program for a moment: starts PER_SECOND PROGRAM [ARGUMENT…] */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <spawn.h>
#include <time.h>

extern char **environ;
/* Those that wait for a CPU; beyond them the machine can't start more. */
#define MAX_RUNNING 200

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  long gap = 1000000000L / atol(argv[1]);
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (int running = 0;;) {
    pid_t child;
    if (posix_spawn(&child, argv[2], 0, 0, argv + 2, environ))
      return 1;
    running++;
    while (running > 0 && waitpid(-1, 0, running < MAX_RUNNING ? WNOHANG : 0) > 0)
      running--;
    next.tv_nsec += gap;
    next.tv_sec += next.tv_nsec / 1000000000L;
    next.tv_nsec %= 1000000000L;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
  }
}
