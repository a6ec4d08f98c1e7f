#include "tree/vector_format.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/kernels.hpp"

namespace evergrow {
namespace {

// Larger numbers saturate: the squared norm of a vector must be finite. Smaller ones become zero,
// because their products could be too small for a float.
constexpr int kMaxExponent = 43, kMinExponent = -60;

// 2^exponent, from the bits of a float: this is computed for every distance.
float step_of(std::int8_t exponent) {
    const std::uint32_t bits = static_cast<std::uint32_t>(127 + exponent) << 23;
    float step = 0;
    std::memcpy(&step, &bits, sizeof step);
    return step;
}

// Several maxima at once: the comparisons of one wait for each other.
float largest_magnitude(const float* vector, std::size_t width) {
    float most[8] = {};
    for (std::size_t i = 0; i < width; i += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) {
            const float magnitude = std::abs(vector[i + lane]);
            most[lane] = magnitude > most[lane] ? magnitude : most[lane];
        }
    return *std::max_element(most, most + 8);
}

// The largest feature is 64 to 128 steps; what rounds to 128 saturates at 127.
std::int8_t exponent_of(const float* vector, std::size_t width) {
    int exponent = 0;
    std::frexp(largest_magnitude(vector, width), &exponent);
    return static_cast<std::int8_t>(std::clamp(exponent - 7, kMinExponent, kMaxExponent));
}

std::uint16_t* as_halves(std::uint8_t* slot) { return reinterpret_cast<std::uint16_t*>(slot); }
const std::uint16_t* as_halves(const std::uint8_t* slot) {
    return reinterpret_cast<const std::uint16_t*>(slot);
}
std::int8_t* as_bytes(std::uint8_t* slot) { return reinterpret_cast<std::int8_t*>(slot); }
const std::int8_t* as_bytes(const std::uint8_t* slot) {
    return reinterpret_cast<const std::int8_t*>(slot);
}

}  // namespace

bool VectorCodec::is_exponent(std::int8_t exponent) {
    return exponent >= kMinExponent && exponent <= kMaxExponent;
}

std::int8_t VectorCodec::write(float* vector, std::uint8_t* slot) const {
    if (format_ == VectorFormat::kHalves) {
        kernels().narrow(vector, width_, as_halves(slot));
        return 0;
    }
    const std::int8_t exponent = exponent_of(vector, width_);
    kernels().narrow_bytes(vector, step_of(exponent), width_, as_bytes(slot));
    return exponent;
}

void VectorCodec::read(const std::uint8_t* slot, std::int8_t exponent, float* vector) const {
    if (format_ == VectorFormat::kHalves)
        kernels().widen(as_halves(slot), width_, vector);
    else
        kernels().widen_bytes(as_bytes(slot), step_of(exponent), width_, vector);
}

float VectorCodec::dot(const float* row, const std::uint8_t* slot, std::int8_t exponent) const {
    if (format_ == VectorFormat::kHalves) return kernels().dot_half(row, as_halves(slot), width_);
    return kernels().dot_bytes(row, as_bytes(slot), step_of(exponent), width_);
}

}  // namespace evergrow
