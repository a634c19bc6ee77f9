// Speaks NVML's API as a driver with two GPUs does, of which the second one has no ECC and has met an XID error.
#include <stddef.h>
#include <string.h>

typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } Process;
typedef struct { void *device; unsigned long long type, data; unsigned gpu_instance, compute_instance; } Event;

static int devices[2], part[1];
static int told = 0;
enum { OK = 0, NOT_SUPPORTED = 3, TIMEOUT = 10 };

static int of(void *device) { return (int *)device == &devices[1]; }

int nvmlInit_v2(void) { return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &devices[index]; return OK; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  if (strcmp(uuid, "GPU-b") && strcmp(uuid, "MIG-b")) return 6;
  *device = strcmp(uuid, "MIG-b") ? &devices[1] : part;
  return OK;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **whole) {
  *whole = &devices[1];
  return device == part ? OK : 2;
}
int nvmlDeviceGetIndex(void *device, unsigned *index) { *index = of(device); return OK; }
int nvmlDeviceGetUtilizationRates(void *device, Utilization *found) {
  found->gpu = of(device) ? 3 : 97;
  found->memory = 50;
  return OK;
}
int nvmlDeviceGetMemoryInfo(void *device, Memory *found) {
  found->total = 80ULL << 30;
  found->used = of(device) ? 1ULL << 30 : 40ULL << 30;
  found->free = found->total - found->used;
  return OK;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = of(device) ? 71250 : 699000; return OK; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) { *degrees = sensor == 0 ? 64 : 0; return OK; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
  *reasons = of(device) ? 0 : 4;
  return OK;
}
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count) {
  if (of(device) || counter != 0) return NOT_SUPPORTED;
  *count = kind == 0 ? 12 : 1;
  return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, Process *found) {
  if (*count < 2) return 7;
  *count = of(device) ? 0 : 2;
  found[0] = (Process){.pid = 4242, .used = 30ULL << 30};
  found[1] = (Process){.pid = 4243, .used = 9ULL << 30};
  return OK;
}
int nvmlEventSetCreate(void **set) { *set = devices; return OK; }
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set) { return types == 8 ? OK : 2; }
int nvmlEventSetWait_v2(void *set, Event *found, unsigned milliseconds) {
  if (told++ != 1) return TIMEOUT;
  *found = (Event){.device = &devices[1], .type = 8, .data = 79};
  return OK;
}
