/* Runs commands by turns, two at a time: `turns FILE MS`, a command a line, its
 * words parted by tabs. Each gets so many milliseconds of CPU time and is then
 * ended by the timer that it was given: whatever the machine does besides, what
 * there is to sample of it stays the same. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_COMMANDS = 16384, MAX_WORDS = 32, AT_ONCE = 2 };

static char **commands[MAX_COMMANDS];
static int count;

static void read_commands(const char *path) {
  FILE *file = fopen(path, "r");
  char *line = NULL;
  size_t size = 0;

  if (!file) {
    perror(path);
    exit(1);
  }
  while (count < MAX_COMMANDS && getline(&line, &size, file) > 0) {
    char **words = calloc(MAX_WORDS + 1, sizeof(char *));
    int n = 0;
    for (char *word = strtok(line, "\t\n"); word && n < MAX_WORDS;
         word = strtok(NULL, "\t\n"))
      words[n++] = strdup(word);
    if (n > 0)
      commands[count++] = words;
  }
  free(line);
  fclose(file);
}

static void run(char **words, const struct itimerval *limit) {
  pid_t pid = fork();

  if (pid == 0) {
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
      dup2(null, fd);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setitimer(ITIMER_PROF, limit, NULL);
    execv(words[0], words);
    _exit(127);
  }
  if (pid > 0)
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv) {
  struct itimerval limit = {{0, 0}, {0, 0}};
  int first = 0;

  if (argc != 3)
    return 2;
  read_commands(argv[1]);
  limit.it_value.tv_usec = atoi(argv[2]) * 1000;
  for (int i = 1; i < AT_ONCE; i++) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      first = i;
      break;
    }
  }
  for (long turn = first;; turn += AT_ONCE)
    run(commands[turn % count], &limit);
}
