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

template <class T>
void Samples::append(const T* rows, const std::int32_t* classes, std::size_t n_rows,
                     const Standardizer& standardizer) {
    float* end = data_ + classes_.size() * width_;
    for (std::size_t i = 0; i < n_rows; ++i)
        standardizer.apply(rows + i * n_features_, width_, end + i * width_);
    classes_.insert(classes_.end(), classes, classes + n_rows);
}

template void Samples::append(const float*, const std::int32_t*, std::size_t, const Standardizer&);
template void Samples::append(const double*, const std::int32_t*, std::size_t, const Standardizer&);

Samples::~Samples() { free_aligned(data_, bytes_); }

}  // namespace evergrow
