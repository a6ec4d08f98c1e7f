#include "samples.hpp"

#include <limits>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace evergrow {
namespace {

// Rows are read in random order: with large pages a row costs one address translation, not many.
constexpr std::size_t kLargePage = std::size_t{2} << 20;

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
      data_(static_cast<float*>(::operator new(bytes_, std::align_val_t(kLargePage)))) {
#if defined(__linux__)
    if (bytes_ >= kLargePage) madvise(data_, bytes_ / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
    classes_.reserve(capacity);
}

Samples::~Samples() { ::operator delete(data_, std::align_val_t(kLargePage)); }

}  // namespace evergrow
