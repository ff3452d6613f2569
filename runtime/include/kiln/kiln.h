#ifndef KILN_KILN_H_
#define KILN_KILN_H_

// Everything but the ops, which are in <kiln/ops/NAME.h>.
//
// Words that hold in every header:
//   ownership     `unique_ptr` and values own; references, spans and views are borrowed for the
//   call unless a comment
//                 says for longer; handles of streams belong to the caller
//   threads       "immutable", "thread-safe" or "one thread at a time"; a type that says nothing is
//   a value shapes        [rows, n]; `*B` stands for any number of dimensions units         bytes
//   end in _bytes, times in _seconds; strides are in elements errors        absl::Status, see
//   <kiln/status.h>

#include <kiln/any_call.h>
#include <kiln/call_spec.h>
#include <kiln/call_view.h>
#include <kiln/compiler.h>
#include <kiln/device.h>
#include <kiln/device_support.h>
#include <kiln/dtype.h>
#include <kiln/identity.h>
#include <kiln/kernel.h>
#include <kiln/log.h>
#include <kiln/memory.h>
#include <kiln/op.h>
#include <kiln/options.h>
#include <kiln/plugin.h>
#include <kiln/program.h>
#include <kiln/registry.h>
#include <kiln/runtime.h>
#include <kiln/selection.h>
#include <kiln/signature.h>
#include <kiln/stats.h>
#include <kiln/status.h>
#include <kiln/target.h>
#include <kiln/tensor.h>
#include <kiln/version.h>

#endif  // KILN_KILN_H_
