/* Keeps two CPUs busy from many processes: `spread FILE FIRST N DEPTH` runs N
 * of them, from number FIRST on. FILE is memory that all share that are started
 * on it: a counter for each, which says how many turns it has. Who has one
 * works for some 0.3 ms and hands it to the next in the ring. So only as many
 * want a CPU as the file had turns at first, however many processes there are.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

static void await_turn(unsigned *own) {
  while (__atomic_load_n(own, __ATOMIC_ACQUIRE) == 0)
    syscall(SYS_futex, own, FUTEX_WAIT, 0, NULL, NULL, 0);
  __atomic_fetch_sub(own, 1, __ATOMIC_ACQ_REL);
}

static void hand_on(unsigned *next) {
  __atomic_fetch_add(next, 1, __ATOMIC_ACQ_REL);
  syscall(SYS_futex, next, FUTEX_WAKE, 1, NULL, NULL, 0);
}

int main(int argc, char **argv) {
  int fd = argc == 5 ? open(argv[1], O_RDWR) : -1;
  struct stat file;

  if (fd < 0 || fstat(fd, &file)) {
    perror("spread FILE FIRST N DEPTH");
    return 1;
  }
  unsigned *turns =
      mmap(NULL, file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  int total = file.st_size / sizeof(*turns), self = atoi(argv[2]);
  if (turns == MAP_FAILED || self < 0 || self >= total)
    return 1;
  for (int i = atoi(argv[3]); i > 1; i--) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      self += i - 1;
      break;
    }
  }
  for (;;) {
    await_turn(&turns[self % total]);
    recurse(atoi(argv[4]));
    hand_on(&turns[(self + 1) % total]);
  }
}
