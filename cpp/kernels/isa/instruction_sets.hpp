// The implementations of Kernels in this build.
#pragma once

#include "kernels/kernels.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#define EVERGROW_X86 1
#endif

namespace evergrow {

extern const Kernels kPortableKernels;
#if defined(EVERGROW_X86)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace evergrow
