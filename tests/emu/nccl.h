/* nccl.h - the part of NCCL's header that cuda/link.cu uses; nccl.cpp implements it. */
#ifndef WEFT_EMU_NCCL_H
#define WEFT_EMU_NCCL_H
#include "tests/emu/runtime.h"

#define NCCL_VERSION_CODE 22809
typedef struct emu_comm *ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;
enum ncclResult_t {
    ncclSuccess = 0, ncclUnhandledCudaError = 1, ncclSystemError = 2, ncclInternalError = 3,
    ncclInvalidArgument = 4, ncclInvalidUsage = 5, ncclRemoteError = 6, ncclInProgress = 7
};
enum ncclDataType_t { ncclFloat32 = 7, ncclFloat64 = 8 };
struct ncclConfig_t { size_t size; int blocking; };
#define NCCL_CONFIG_INITIALIZER { sizeof(ncclConfig_t), 1 }

extern "C" {
ncclResult_t ncclGetVersion(int *), ncclGetUniqueId(ncclUniqueId *);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *, int ranks, ncclUniqueId, int rank, ncclConfig_t *);
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *), ncclCommAbort(ncclComm_t);
ncclResult_t ncclGroupStart(), ncclGroupEnd();
ncclResult_t ncclSend(const void *, size_t, ncclDataType_t, int to, ncclComm_t, cudaStream_t);
ncclResult_t ncclRecv(void *, size_t, ncclDataType_t, int from, ncclComm_t, cudaStream_t);
const char  *ncclGetErrorString(ncclResult_t);
}
#endif
