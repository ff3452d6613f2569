// A profiler as NVTX sees one (NVTX_INJECTION64_PATH): writes what is pushed and popped to $KILN_NVTX_OUT.
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static FILE* out;

static nvtxDomainHandle_t create_domain(const char* name) {
  fprintf(out, "domain %s\n", name);
  return (nvtxDomainHandle_t)(void*)&out;
}
static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  fprintf(out, "push %s\n", domain == (nvtxDomainHandle_t)(void*)&out ? range->message.ascii : "elsewhere");
  return 0;
}
static int pop(nvtxDomainHandle_t domain) {
  (void)domain;
  fprintf(out, "pop\n");
  fflush(out);
  return 0;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const NvtxExportTableCallbacks* callbacks = (const NvtxExportTableCallbacks*)get_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table;
  unsigned size = 0;
  if (callbacks == NULL || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  out = fopen(getenv("KILN_NVTX_OUT"), "w");
  if (out == NULL) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  return 1;
}
