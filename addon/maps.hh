// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <napi.h>

void DefineBpfPrograms(Napi::Env env, Napi::Object exports);
void DefineDescriptors(Napi::Env env, Napi::Object exports);
void DefineFiles(Napi::Env env, Napi::Object exports);
void DefineMemory(Napi::Env env, Napi::Object exports);
void DefineMaps(Napi::Env env, Napi::Object exports);
void DefineNotify(Napi::Env env, Napi::Object exports);
void DefinePerf(Napi::Env env, Napi::Object exports);
void DefineReader(Napi::Env env, Napi::Object exports);
void DefineRights(Napi::Env env, Napi::Object exports);
void DefineSeccomp(Napi::Env env, Napi::Object exports);
void DefineTracepoints(Napi::Env env, Napi::Object exports);
