// kiln-compile-worker: compiles for the process that started it, whose socket is its standard
// input.
#include "jit/worker_main.h"

int main() { return kiln::jit::run_compile_worker(0); }
