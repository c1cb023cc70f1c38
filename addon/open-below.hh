// SPDX-License-Identifier: Apache-2.0
// Paths that foreign files and processes name, looked up below a directory and without being led by strangers.
// No Node-API: the reader process links it, too.
#ifndef EVERYFRAME_OPEN_BELOW_HH
#define EVERYFRAME_OPEN_BELOW_HH

#include <sys/types.h>

constexpr uid_t kAnybody = static_cast<uid_t>(-1);

// The file for whose sake another one is opened. Whoever may change it may decide what it is named.
struct Owner {
  // kAnybody: whoever led there is believed.
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;
  // A directory that they can't enter is not entered on their behalf; 0: all can.
  uid_t reader = 0;
  gid_t reader_group = kAnybody;
};

// As if `root` (a directory) were "/": ".." and links stay below it, those of /proc that lead anywhere are not
// followed. A descriptor that can be asked what it is and no more (O_PATH), or -errno.
int OpenInRoot(int root, const char* path);

// The same, where nobody but uid 0, the owner of `root` and those of `owner` can change the file or where the path
// leads: else -EPERM. -EACCES where `owner.reader` does not get there.
int OpenBelow(int root, const char* path, const Owner& owner);

#endif
