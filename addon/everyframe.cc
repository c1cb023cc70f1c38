// SPDX-License-Identifier: Apache-2.0
// The seam between TypeScript and the kernel: no policy here. Typed in agent/base/native.ts.
#include <napi.h>

#include "maps.hh"
#include "object.hh"
#include "ring.hh"

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  CaptureLibbpfLog();
  exports.Set("BpfObject", BpfObject::Define(env));
  exports.Set("Ring", Ring::Define(env));
  DefineBpfPrograms(env, exports);
  DefineDescriptors(env, exports);
  DefineFiles(env, exports);
  DefineMaps(env, exports);
  DefineMemory(env, exports);
  DefineNotify(env, exports);
  DefinePerf(env, exports);
  DefineReader(env, exports);
  DefineRights(env, exports);
  DefineSeccomp(env, exports);
  DefineTracepoints(env, exports);
  return exports;
}

NODE_API_MODULE(everyframe, Init)
