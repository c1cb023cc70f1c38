// SPDX-License-Identifier: Apache-2.0
// Linked into the addon of `npm run dist`, which runs with glibc 2.28: what the compiler's headers take from a later one.
extern "C" {
// Since 2.32: whether locks may be left out. Never.
char __libc_single_threaded = 0;
}
