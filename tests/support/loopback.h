#ifndef KILN_TESTS_SUPPORT_LOOPBACK_H_
#define KILN_TESTS_SUPPORT_LOOPBACK_H_

#include "base/fd.h"

#include <string>
#include <string_view>

// Plain sockets of this machine.
namespace kiln::testing {

Fd connect_to(int port);            // not valid: nobody listens
Fd listen_on_free_port(int& port);  // aborts when there is none
bool send_all(const Fd& socket, std::string_view bytes);
std::string receive_some(const Fd& socket);  // empty: closed

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_LOOPBACK_H_
