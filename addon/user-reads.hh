// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether this kernel lets BPF read its memory by a helper; one that is locked down for confidentiality does not.
bool HasKernelReads();
// From now on programs that are opened keep their calls of bpf_probe_read_user, which libbpf (1.1 to 1.7) takes from
// them where HasKernelReads() is false: it takes the kernel for one before 5.5, which has neither. Once is enough.
void KeepUserReads();
