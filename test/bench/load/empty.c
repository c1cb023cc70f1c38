/* empty OBJECT SECONDS: attaches its program and prints how many nanoseconds a run of it has in the kernel's books. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct bpf_prog_info info_of(const struct bpf_program *program) {
  struct bpf_prog_info info = {0};
  unsigned int length = sizeof(info);
  bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length);
  return info;
}

int main(int argc, char **argv) {
  struct bpf_object *object = argc == 3 ? bpf_object__open_file(argv[1], NULL) : NULL;
  if (!object || bpf_object__load(object))
    return 1;
  struct bpf_program *program = bpf_object__next_program(object, NULL);
  if (!bpf_program__attach(program))
    return 1;
  struct bpf_prog_info before = info_of(program);
  sleep(atoi(argv[2]));
  struct bpf_prog_info after = info_of(program);
  printf("%.0f\n", (double)(after.run_time_ns - before.run_time_ns) / (after.run_cnt - before.run_cnt));
  return 0;
}
