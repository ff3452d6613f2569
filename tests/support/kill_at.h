#ifndef KILN_TESTS_SUPPORT_KILL_AT_H_
#define KILN_TESTS_SUPPORT_KILL_AT_H_

#include <string>
#include <vector>

namespace kiln::testing {

// Runs a program that stops itself (SIGSTOP) where the part of interest begins, lets it go on and
// kills it (SIGKILL) when its first thread is about to make its n-th system call from there, n from
// 1: the calls before it are done, it and all after it are not. True: killed. False: it made fewer,
// and ended with status 0. Aborts when the program cannot be traced, or ended otherwise.
bool kill_at_system_call(const std::vector<std::string>& command, int n);

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_KILL_AT_H_
