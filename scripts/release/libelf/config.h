/* For libelf of elfutils, compiled without its own configure, with glibc and musl. */
#define HAVE_VISIBILITY 1
#define HAVE_DECL_MEMPCPY 1
#define HAVE_DECL_REALLOCARRAY 1
#define HAVE_DECL_POWEROF2 1
#define HAVE_ERR_H 1
#include <eu-config.h>
