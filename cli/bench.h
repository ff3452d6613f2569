#ifndef KILN_CLI_BENCH_H_
#define KILN_CLI_BENCH_H_

#include "cli/session.h"

namespace kiln::cli {

// `kiln bench`.
void add_bench(CLI::App& app, Session& session);

}  // namespace kiln::cli

#endif  // KILN_CLI_BENCH_H_
