// How a tree stores the vectors of its centroids: rounded, in slots of equal size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tree/split.hpp"

namespace evergrow {

// halves  half precision: the normals of planes, and class means of features whose spreads differ
//         too much
// bytes   one byte per feature: multiples of 2^exponent, for class means. The largest feature
//         decides the exponent: it is 64 to 128 steps. The step is a power of two, so that it can
//         be multiplied before a sum or after it, and sums that are exact stay exact.
enum class VectorFormat : std::uint8_t { kHalves = 0, kBytes = 1 };

// The format of a new tree. A mean is an average of samples, which scatter far more than bytes
// round; the weights of a plane have no such error.
constexpr VectorFormat format_for(SplitKind kind) {
    return kind == SplitKind::kNcm ? VectorFormat::kBytes : VectorFormat::kHalves;
}

// Writes and reads the slots of one tree. A vector is rounded before it is used, so that growing,
// and a saved and loaded tree, route alike.
class VectorCodec {
  public:
    VectorCodec(VectorFormat format, std::size_t width) : format_(format), width_(width) {}

    VectorFormat format() const { return format_; }
    std::size_t width() const { return width_; }
    std::size_t slot_bytes() const { return format_ == VectorFormat::kBytes ? width_ : 2 * width_; }

    // Whether a vector can have this exponent; a file may contain anything.
    static bool is_exponent(std::int8_t exponent);
    // Stores a vector and rounds it in place. Returns its exponent, 0 for halves.
    std::int8_t write(float* vector, std::uint8_t* slot) const;
    void read(const std::uint8_t* slot, std::int8_t exponent, float* vector) const;
    // The dot product of a row and a stored vector, in place.
    float dot(const float* row, const std::uint8_t* slot, std::int8_t exponent) const;

  private:
    VectorFormat format_;
    std::size_t width_;
};

}  // namespace evergrow
