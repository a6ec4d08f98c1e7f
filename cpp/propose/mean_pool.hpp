// All class means that a node may compare with, computed once [Ristin2015 Sec. 4.2].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "propose/class_means.hpp"
#include "propose/proposer.hpp"
#include "score/objective.hpp"

namespace evergrow {

class MeanPool {
  public:
    // The objective selects the classes; it must outlive the pool.
    MeanPool(const Samples& rows, const Objective& objective)
        : width_(rows.width()), objective_(objective), class_means_(rows) {}

    // Computes the means from all samples at a node; incomplete if `stop` is set meanwhile.
    void fill(const NodeSamples& node, const StopFlag& stop);

    std::size_t size() const { return centroids_.size(); }
    // The rounded means in single precision.
    const float* const* vectors() const { return vectors_.data(); }
    const float* offsets() const { return offsets_.data(); }
    // Makes a split of some of the means; sides are not set.
    void write_split(const std::int32_t* places, std::size_t n, Split& split) const;

  private:
    void choose_classes(const NodeSamples& node);
    const std::int32_t* rows_of(const NodeSamples& node, std::size_t i, std::size_t* n);

    const std::size_t width_;
    const Objective& objective_;
    ClassMeans class_means_;
    PooledClasses pooled_;
    std::vector<std::int32_t> present_;
    std::vector<std::int32_t> gathered_;  // rows of a class with several ranges
    std::vector<Centroid> centroids_;
    std::vector<std::int32_t> counts_;
    std::vector<const float*> vectors_;
    std::vector<float> offsets_;
    AlignedVector<float> means_;
    AlignedVector<std::uint8_t> slots_;
    std::size_t slot_bytes_ = 0;
};

}  // namespace evergrow
