// SPDX-License-Identifier: Apache-2.0
// Messages over a socket, with a descriptor beside them or without one. Nothing is allocated.
#ifndef EVERYFRAME_DESCRIPTOR_MESSAGE_HH
#define EVERYFRAME_DESCRIPTOR_MESSAGE_HH

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

// Waits until it is sent. `fd`: negative for none. -1 and errno where it is not.
inline ssize_t SendWithDescriptor(int socket, const void* bytes, size_t size, int fd) {
  iovec part = {const_cast<void*>(bytes), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(int));
  }
  ssize_t count;
  do count = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (count < 0 && errno == EINTR);
  return count;
}

// Waits for a message. Its bytes, 0 where the other end is closed, -1 and errno. `fd`: what came beside it, to be
// closed by the caller, else -1; of more descriptors the kernel closes those behind the first. `flags`: of recvmsg().
inline ssize_t ReceiveWithDescriptor(int socket, iovec* parts, size_t part_count, int* fd, int flags = 0) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = part_count;
  message.msg_control = control;
  // the padding behind it would have room for another one
  message.msg_controllen = CMSG_LEN(sizeof(int));
  *fd = -1;
  ssize_t count;
  do count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  while (count < 0 && errno == EINTR);
  const cmsghdr* head = count > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) memcpy(fd, CMSG_DATA(head), sizeof(int));
  return count;
}

#endif
