/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What libbpf's header of that name declares, for a build as an ordinary
 * program: host.c has the functions. */
#ifndef EF_SHIM_HELPERS_H
#define EF_SHIM_HELPERS_H

#define SEC(name)
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __ksym
#define __uint(name, value) int(*name)[value]
#define __type(name, type) typeof(type) *name
#define __array(name, type) typeof(type) *name[]

/* `map` is any map of ebpf/, or what a look-up in an array of maps has given */
void *host_map_lookup(void *map, const void *key);
long host_map_update(void *map, const void *key, const void *value);
#define bpf_map_lookup_elem(map, key) host_map_lookup((void *)(map), (key))
#define bpf_map_update_elem(map, key, value, flags) host_map_update((void *)(map), (key), (value))

/* as the kernel's: 0, or below 0 with the destination filled with zeros */
long bpf_probe_read_user(void *dst, __u32 size, const void *address);
/* kernel-memory.h: there is no verifier to ask for a type */
#define EF_NO_RDONLY_CAST
long bpf_probe_read_kernel(void *dst, __u32 size, const void *address);
__u64 bpf_get_current_task(void);
long bpf_ringbuf_output(void *ringbuf, void *data, __u64 size, __u64 flags);

#endif
