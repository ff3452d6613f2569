#include <kiln/plugin.h>

#include "cpu_backend.h"

KILN_PLUGIN("cpu", kiln::fill_cpu_backend)
