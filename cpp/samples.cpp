#include "samples.hpp"

#include <limits>
#include <new>

#include "aligned.hpp"

namespace evergrow {
namespace {

std::size_t allocation_bytes(std::size_t n_rows, std::size_t width) {
    const std::size_t row_bytes = width * sizeof(float);
    if (n_rows > std::numeric_limits<std::size_t>::max() / 2 / row_bytes) throw std::bad_alloc();
    return n_rows * row_bytes;
}

}  // namespace

Samples::Samples(std::size_t n_features, std::size_t capacity)
    : n_features_(n_features),
      width_(padded_width(n_features)),
      capacity_(capacity),
      bytes_(allocation_bytes(capacity, width_)),
      data_(static_cast<float*>(allocate_aligned(bytes_))) {
    classes_.reserve(capacity);
}

Samples::~Samples() { free_aligned(data_, bytes_); }

}  // namespace evergrow
