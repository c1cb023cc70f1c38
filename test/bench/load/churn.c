/* Lives for a moment, with a few threads that work and end. */
#include <pthread.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void burn(void) {
  for (unsigned long i = 0; i < 300000; i++)
    sink += i * i;
}

static void *work(void *argument) {
  burn();
  return argument;
}

int main(void) {
  for (int round = 0; round < 4; round++) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
      if (pthread_create(&threads[i], 0, work, 0))
        return 1;
    for (int i = 0; i < 4; i++)
      pthread_join(threads[i], 0);
  }
  return 0;
}
