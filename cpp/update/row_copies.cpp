#include "update/row_copies.hpp"

#include <algorithm>

#include "run/random_stream.hpp"

namespace evergrow {

RowCopies::RowCopies(const Samples& samples, const std::vector<std::int32_t>& rows)
    : width_(samples.width()) {
    AlignedVector<float> space(width_);
    AlignedVector<std::uint16_t> halves(width_);
    for (const std::int32_t row : rows) {
        const float* vector = samples.read(row, space.data());
        if (vector != space.data()) std::copy_n(vector, width_, space.data());
        kernels().narrow(space.data(), width_, halves.data());
        hashes_.insert(hash(halves.data()));
    }
}

std::uint64_t RowCopies::hash(const std::uint16_t* mean) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < width_; i += 4) {
        const std::uint64_t word = std::uint64_t{mean[i]} | std::uint64_t{mean[i + 1]} << 16 |
                                   std::uint64_t{mean[i + 2]} << 32 |
                                   std::uint64_t{mean[i + 3]} << 48;
        sum = mix(sum + kGolden) ^ word;
    }
    return mix(sum);
}

}  // namespace evergrow
