// The op for tests of tuning as a plugin, for processes of their own.
#include <kiln/plugin.h>

#include "tests/tuning/tuning_backend.h"

KILN_PLUGIN("tuning_toy", kiln::tuning_backend::fill)
