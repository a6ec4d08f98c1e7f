#include "kernels/kernels.hpp"

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "kernels/isa/instruction_sets.hpp"

#if defined(EVERGROW_X86)
#if defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

namespace evergrow {
namespace {

#if defined(EVERGROW_X86)
// CPUID bits instead of the compilers' names for features, which differ between versions.
struct CpuInfo {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuInfo cpu_info(unsigned leaf) {
    CpuInfo info;
#if defined(_MSC_VER)
    int registers[4] = {};
    __cpuid(registers, 0);
    if (static_cast<unsigned>(registers[0]) < leaf) return info;
    __cpuidex(registers, static_cast<int>(leaf), 0);
    info = CpuInfo{static_cast<unsigned>(registers[0]), static_cast<unsigned>(registers[1]),
                   static_cast<unsigned>(registers[2]), static_cast<unsigned>(registers[3])};
#else
    __get_cpuid_count(leaf, 0, &info.eax, &info.ebx, &info.ecx, &info.edx);
#endif
    return info;
}

bool has_bit(unsigned word, int bit) { return (word >> bit & 1U) != 0; }

// Whether the operating system saves these register sets on a context switch.
bool system_saves(unsigned mask) {
    if (!has_bit(cpu_info(1).ecx, 27)) return false;
#if defined(_MSC_VER)
    const auto saved = static_cast<unsigned>(_xgetbv(0));
#else
    unsigned saved = 0, high = 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
#endif
    return (saved & mask) == mask;
}

bool runs_avx2() {
    const CpuInfo basic = cpu_info(1), extended = cpu_info(7);
    const bool fma = has_bit(basic.ecx, 12), avx = has_bit(basic.ecx, 28);
    const bool f16c = has_bit(basic.ecx, 29), avx2 = has_bit(extended.ebx, 5);
    return fma && avx && f16c && avx2 && system_saves(0x6);
}

bool runs_avx512() {
    const CpuInfo extended = cpu_info(7);
    const bool f = has_bit(extended.ebx, 16), dq = has_bit(extended.ebx, 17);
    const bool bw = has_bit(extended.ebx, 30), vl = has_bit(extended.ebx, 31);
    return runs_avx2() && f && dq && bw && vl && system_saves(0xE6);
}
#endif

const Kernels& choose() {
    const char* wanted = std::getenv("EVERGROW_ISA");
    if (wanted != nullptr) {
        const Kernels* named = kernels_named(wanted);
        if (named != nullptr) return *named;
        throw std::runtime_error(
            std::string("EVERGROW_ISA must name an instruction set of this processor "
                        "(portable, avx2 or avx512), got '") +
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

std::vector<std::string> available_kernels() {
    std::vector<std::string> names;
    for (const char* name : {"portable", "avx2", "avx512"})
        if (kernels_named(name) != nullptr) names.emplace_back(name);
    return names;
}

const Kernels& kernels() {
    static const Kernels& chosen = choose();
    return chosen;
}

}  // namespace evergrow
