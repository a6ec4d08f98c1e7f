#include "distance.hpp"

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "isa/isa.hpp"

#if defined(_MSC_VER) && defined(EVERGROW_X86)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace evergrow {
namespace {

#if defined(EVERGROW_X86)
#if defined(_MSC_VER)
bool cpu_has(int leaf, int word, int bit) {
    int registers[4] = {};
    __cpuidex(registers, leaf, 0);
    return (registers[word] >> bit & 1) != 0;
}
bool os_saves(unsigned long long mask) { return cpu_has(1, 2, 27) && (_xgetbv(0) & mask) == mask; }
bool runs_avx2() {
    return os_saves(0x6) && cpu_has(1, 2, 12) && cpu_has(1, 2, 29) && cpu_has(7, 1, 5);
}
bool runs_avx512() {
    return runs_avx2() && os_saves(0xE6) && cpu_has(7, 1, 16) && cpu_has(7, 1, 17) &&
           cpu_has(7, 1, 30) && cpu_has(7, 1, 31);
}
#else
bool runs_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c");
}
bool runs_avx512() {
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif
#endif

const Kernels& choose() {
    const char* wanted = std::getenv("EVERGROW_ISA");
    if (wanted != nullptr) {
        const Kernels* named = kernels_named(wanted);
        if (named != nullptr) return *named;
        throw std::runtime_error(
            std::string("EVERGROW_ISA must name an instruction set this processor runs "
                        "(portable, avx2, avx512), got '") +
            wanted + "'");
    }
    for (const char* name : {"avx512", "avx2"}) {
        const Kernels* fastest = kernels_named(name);
        if (fastest != nullptr) return *fastest;
    }
    return kPortableKernels;
}

}  // namespace

const Kernels* kernels_named(const char* name) {
    if (std::strcmp(name, "portable") == 0) return &kPortableKernels;
#if defined(EVERGROW_X86)
    if (std::strcmp(name, "avx2") == 0 && runs_avx2()) return &kAvx2Kernels;
    if (std::strcmp(name, "avx512") == 0 && runs_avx512()) return &kAvx512Kernels;
#endif
    return nullptr;
}

const Kernels& kernels() {
    static const Kernels& chosen = choose();
    return chosen;
}

}  // namespace evergrow
