// Rows as vectors for a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "samples/samples.hpp"

namespace evergrow {

// Reads a block of rows at a time. The samples must outlive it.
class RowReader {
  public:
    // Rows per kernel call. Sums of this many rows are accurate enough in single precision.
    static constexpr std::size_t kBlock = 512;

    explicit RowReader(const Samples& rows) : rows_(rows), vectors_(kBlock) {
        if (rows.precision() == Precision::kFloat16) buffer_.resize(kBlock * rows.width());
    }
    // Pointers to at most kBlock rows, valid until the next call.
    const float* const* read(const std::int32_t* rows, std::size_t n) {
        const std::size_t width = rows_.width();
        for (std::size_t i = 0; i < n; ++i)
            vectors_[i] = rows_.read(rows[i], buffer_.data() + i * width);
        return vectors_.data();
    }

  private:
    const Samples& rows_;
    std::vector<const float*> vectors_;
    AlignedVector<float> buffer_;
};

}  // namespace evergrow
