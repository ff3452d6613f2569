// The child process of plugin_probe's tests.
#include "runtime/plugin_probe.h"

int main(int argc, char** argv) {
  return argc == 2 ? kiln::internal::answer_plugin_probe(argv[1]) : 2;
}
