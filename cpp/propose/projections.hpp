// Dot products of all samples at a node with a few vectors in stored precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "propose/proposer.hpp"

namespace evergrow {

class Projections {
  public:
    explicit Projections(const Samples& rows)
        : width_(rows.width()),
          codec_(format_for(SplitKind::kLinear), rows.width()),
          reader_(rows) {}

    // The number of vectors to use at once, which bounds the memory for a large node.
    std::size_t max_at_once(std::size_t n_rows) const;
    // Starts a group of vectors, all zero.
    void start(std::size_t count);
    std::size_t count() const { return vectors_.size(); }
    float* vector(std::size_t j) { return floats_.data() + j * width_; }
    // Rounds all vectors as they are stored, and computes their products
    // with every row of the node. Incomplete if `stop` is set meanwhile.
    void compute(const NodeSamples& node, const StopFlag& stop);

    // Products of the rows with vector j.
    const float* values(std::size_t j) const { return values_.data() + j * n_rows_; }
    // Makes a split of vector j with this threshold.
    void write_split(std::size_t j, float threshold, Split& split) const;

  private:
    const std::size_t width_;
    const VectorCodec codec_;
    std::size_t n_rows_ = 0;
    RowReader reader_;
    std::vector<const float*> vectors_;
    AlignedVector<float> floats_;
    AlignedVector<std::uint8_t> slots_;
    std::vector<float> values_;
};

}  // namespace evergrow
