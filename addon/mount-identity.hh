// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// "mount:device:inode" of a directory, "" where there is none. From 6.8 on a mount's number is never given again;
// before, not while a descriptor is open on it.
std::string MountIdentity(const char* path);
