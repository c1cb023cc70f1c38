/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the programs have to know of the processor: one header for each, with the same names in it. Registers are
 * numbered as DWARF numbers them; `leaf` is an array of EF_REGISTERS of them.
 */
#ifndef EF_ARCH_H
#define EF_ARCH_H

#if defined(__TARGET_ARCH_x86)
#include "arch-x86.h"
#elif defined(__TARGET_ARCH_arm64)
#include "arch-arm64.h"
#else
#error "no arch-….h for this processor: build with -D__TARGET_ARCH_x86 or -D__TARGET_ARCH_arm64"
#endif

#endif
