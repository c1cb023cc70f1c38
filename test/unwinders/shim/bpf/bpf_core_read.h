/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Nothing is relocated: a field is where the compiler has put it. */
#ifndef EF_SHIM_CORE_READ_H
#define EF_SHIM_CORE_READ_H

#define bpf_core_field_offset(type, field) offsetof(type, field)
#define bpf_core_field_exists(type, field) 1

#endif
