#ifndef KILN_BENCH_GPU_C_API_H_
#define KILN_BENCH_GPU_C_API_H_

#include <kiln/export.h>

// The suite for other languages: bench/peers/peers.py measures Kiln and its peers in one process,
// on one stream, with one timer. Every function but `kb_open` takes what it returned, leaves a JSON
// text for `kb_result` and returns 0, or another number with {"error": "..."} as the text. One
// thread.
extern "C" {

struct kb_suite;

// One of those that are measured: enqueues one call on the stream; returns 0 when it has.
typedef int (*kb_call)(void);

// `options`: {"device":0,"cupti":"","list_only":false}. Never null; `kb_result` says whether it is
// open. With "list_only" no device is opened and only `kb_workloads` works. Never closed.
KILN_EXPORT kb_suite* kb_open(const char* options);
// Of the last function called. Valid until the next.
KILN_EXPORT const char* kb_result(kb_suite* suite);

// The perf workloads of a family ("": of all).
KILN_EXPORT int kb_workloads(kb_suite* suite, const char* family);
// {"machine","method"}
KILN_EXPORT int kb_machine(kb_suite* suite, const char* timer_options);
// Copy rates and the shortest kernel.
KILN_EXPORT int kb_floor(kb_suite* suite, const char* timer_options);
KILN_EXPORT int kb_device_state(kb_suite* suite);

// Makes the workload at `index` of the last kb_workloads ready: {"handle":N}; `release` drops it.
KILN_EXPORT int kb_prepare(kb_suite* suite, int index);
KILN_EXPORT int kb_release(kb_suite* suite, int handle);
// A matrix product by cuBLASLt, on memory of the caller's: {"handle","tried","version"}. `problem`:
// {"m","n","k","dtype","library":""}.
KILN_EXPORT int kb_cublaslt(kb_suite* suite, const char* problem, void* stream, void* a, void* b,
                            void* d);
// Device memory of the caller's in the signature's order, null for what is not passed.
KILN_EXPORT int kb_bind(kb_suite* suite, int handle, void* stream, void* const* inputs,
                        int input_count, void* const* outputs, int output_count);
KILN_EXPORT int kb_run(kb_suite* suite, int handle);
KILN_EXPORT int kb_served_by(kb_suite* suite, int handle);

// Times `count` contenders on `stream`, behind a copy that moves `bytes` (0: none). A name
// "kiln:N" or "cublaslt:N" is that of handle N, and its call may be null. The result is a list of
// timings in that order.
KILN_EXPORT int kb_measure(kb_suite* suite, void* stream, double bytes, int count,
                           const char* const* names, const kb_call* calls,
                           const char* timer_options);

// Microseconds that one enqueueing of the bound workload costs the calling thread, one figure a
// round of `calls`; the device is idle before each round. A negative handle: the driver's launch of
// an empty kernel alone. The result is {"us":[...]}.
KILN_EXPORT int kb_host_time(kb_suite* suite, int handle, void* stream, int calls, int rounds);
}

#endif  // KILN_BENCH_GPU_C_API_H_
