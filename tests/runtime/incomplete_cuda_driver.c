// A driver that says it is of CUDA 13.0, has every function up to cuLibraryLoadData and not that one.
#include <cuda.h>
#include <string.h>

#undef cuGetProcAddress_v2

static int unused_function(void) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* found) {
  (void)version;
  (void)flags;
  const int lacking = strcmp(symbol, "cuLibraryLoadData") == 0;
  *function = lacking ? NULL : (void*)&unused_function;
  *found = lacking ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
  return lacking ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
