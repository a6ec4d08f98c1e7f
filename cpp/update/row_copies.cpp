#include "update/row_copies.hpp"

#include <algorithm>
#include <cstring>

#include "run/random_stream.hpp"

namespace evergrow {
namespace {

std::uint64_t hash(const std::uint8_t* slot, std::int8_t exponent, std::size_t n_bytes) {
    auto sum = static_cast<std::uint64_t>(exponent);
    for (std::size_t i = 0; i < n_bytes; i += sizeof sum) {
        std::uint64_t word = 0;
        std::memcpy(&word, slot + i, sizeof word);
        sum = mix(sum + kGolden) ^ word;
    }
    return mix(sum);
}

}  // namespace

RowCopies::RowCopies(const Samples& samples, const std::vector<std::int32_t>& rows) {
    const std::size_t width = samples.width();
    AlignedVector<float> space(width);
    // The trees of a forest may differ in their format.
    for (const VectorFormat format : {VectorFormat::kHalves, VectorFormat::kBytes}) {
        const VectorCodec codec(format, width);
        AlignedVector<std::uint8_t> slot(codec.slot_bytes());
        for (const std::int32_t row : rows) {
            const float* vector = samples.read(row, space.data());
            if (vector != space.data()) std::copy_n(vector, width, space.data());
            const std::int8_t exponent = codec.write(space.data(), slot.data());
            hashes_.insert(hash(slot.data(), exponent, slot.size()));
        }
    }
}

bool RowCopies::holds(const Tree& tree, const Centroid& centroid) const {
    if (hashes_.empty()) return false;
    const auto source = CentroidSource::from_code(centroid.source);
    return hashes_.count(hash(tree.vector(source.index()), centroid.exponent,
                              tree.codec().slot_bytes())) != 0;
}

}  // namespace evergrow
