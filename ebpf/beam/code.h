/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the unwinder has to know of the machine code that BeamAsm makes: one header for each processor, with the same names in it. */
#ifndef EF_BEAM_CODE_H
#define EF_BEAM_CODE_H

#if defined(__TARGET_ARCH_x86)
#include "code-x86.h"
#else
#include "code-arm64.h"
#endif

#endif
