// SPDX-License-Identifier: Apache-2.0
// Linux 5.13 to 5.15 refuse a program that calls a kernel function which they lack, even where no path leads to it
// ("kernel btf_id 0 is not a function"). libbpf before 1.2 leaves such calls in.
#pragma once

// From now on programs are loaded without them. For all of this process.
void LeaveOutUnknownCalls();
