// A library to preload, as profilers and tracers have them: it wraps calls of the C library, and
// may not be entered from a signal handler. It ends the process there, where another would allocate
// memory in the middle of an allocation.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

// A handler runs with its own signal blocked.
static void refuse_in_handler(void) {
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, NULL, &blocked);
  if (sigismember(&blocked, SIGALRM)) abort();
}

#define WRAP(RESULT, NAME, PARAMETERS, ARGUMENTS)                             \
  RESULT NAME PARAMETERS {                                                    \
    refuse_in_handler();                                                      \
    RESULT(*real) PARAMETERS = (RESULT(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME); \
    return real ARGUMENTS;                                                    \
  }
WRAP(int, open, (const char* path, int flags, mode_t mode), (path, flags, mode))
WRAP(int, open64, (const char* path, int flags, mode_t mode), (path, flags, mode))
WRAP(int, close, (int fd), (fd))
WRAP(ssize_t, read, (int fd, void* to, size_t size), (fd, to, size))
WRAP(ssize_t, write, (int fd, const void* from, size_t size), (fd, from, size))
WRAP(ssize_t, pread, (int fd, void* to, size_t size, off_t at), (fd, to, size, at))
WRAP(ssize_t, pread64, (int fd, void* to, size_t size, off_t at), (fd, to, size, at))
WRAP(pid_t, getppid, (void), ())
