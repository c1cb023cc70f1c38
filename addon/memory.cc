// SPDX-License-Identifier: Apache-2.0
#include <napi.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

// Gives back the pages that malloc keeps without need, of all threads' arenas. Nothing to do with other C libraries.
static void ReleaseFreeMemory(const Napi::CallbackInfo&) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void DefineMemory(Napi::Env env, Napi::Object exports) {
  exports.Set("releaseFreeMemory", Napi::Function::New(env, ReleaseFreeMemory));
}
