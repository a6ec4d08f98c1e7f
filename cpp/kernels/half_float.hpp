// Half precision (IEEE 754 binary16), the stored precision of class means.
#pragma once

#include <cstdint>
#include <cstring>

namespace evergrow {

inline float half_to_float(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
    const std::uint32_t exponent = (half >> 10) & 0x1FU;
    std::uint32_t mantissa = half & 0x3FFU;
    std::uint32_t bits = 0;
    if (exponent == 0x1FU) {
        bits = sign | 0x7F800000U | (mantissa << 13);
    } else if (exponent != 0) {
        bits = sign | ((exponent + 112U) << 23) | (mantissa << 13);
    } else if (mantissa == 0) {
        bits = sign;
    } else {  // subnormal: shift the leading one into place
        std::uint32_t shift = 0;
        while ((mantissa & 0x400U) == 0) {
            mantissa <<= 1;
            ++shift;
        }
        bits = sign | ((113U - shift) << 23) | ((mantissa & 0x3FFU) << 13);
    }
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Rounds to nearest, ties to even. Saturates at the largest half (65504): a centroid with an
// infinite feature would never be nearest to any row.
inline std::uint16_t float_to_half(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude >= 0x477FE000U) return static_cast<std::uint16_t>(sign | 0x7BFFU);
    if (magnitude < 0x33000000U) return sign;  // below half of the smallest subnormal
    if (magnitude < 0x38800000U) {             // subnormal result
        const std::uint32_t shift = 126U - (magnitude >> 23);
        const std::uint32_t mantissa = (magnitude & 0x7FFFFFU) | 0x800000U;
        const std::uint32_t half = mantissa >> shift;
        const std::uint32_t rest = mantissa & ((1U << shift) - 1U);
        const std::uint32_t tie = 1U << (shift - 1U);
        const std::uint32_t up = (rest > tie || (rest == tie && (half & 1U) != 0)) ? 1U : 0U;
        return static_cast<std::uint16_t>(sign | (half + up));
    }
    const std::uint32_t half = (magnitude - 0x38000000U) >> 13;
    const std::uint32_t rest = magnitude & 0x1FFFU;
    const std::uint32_t up = (rest > 0x1000U || (rest == 0x1000U && (half & 1U) != 0)) ? 1U : 0U;
    return static_cast<std::uint16_t>(sign | (half + up));
}

}  // namespace evergrow
