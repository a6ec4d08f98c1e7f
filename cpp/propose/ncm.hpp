// Invents the NCM split of a node: Eq. (5) and (6) of Ristin 2014, chosen by Eq. (3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../aligned.hpp"
#include "../colourings.hpp"
#include "../distance.hpp"
#include "../gain.hpp"
#include "../parallel.hpp"
#include "../samples.hpp"
#include "../split.hpp"
#include "known_means.hpp"

namespace evergrow {

// The samples of one class at a node: places [begin, end) among the rows of the node.
struct ClassRange {
    std::int32_t class_id;
    std::int32_t begin;
    std::int32_t end;

    std::int32_t size() const { return end - begin; }
};

// The samples at a node: row numbers sorted by class.
struct NodeSamples {
    const std::int32_t* rows;
    std::size_t n_rows;
    const std::vector<ClassRange>& ranges;
    const KnownMeans& known;      // stored by nodes above this one
    const std::uint16_t* halves;  // where they are stored
};

struct NcmRules {
    std::size_t n_centroids;        // k, unless fewer classes are present
    std::size_t n_assignments;      // colourings tried
    std::int32_t min_samples_leaf;  // mu
    double min_gain;
};

class NcmProposer {
  public:
    NcmProposer(const Samples& samples, const NcmRules& rules, const EntropyTable& n_log_n);

    // Finds the best split and leaves it in split() and goes_right(); false if there is none, or
    // if `stop` was set on the way.
    bool propose(const NodeSamples& node, Stream stream, const StopFlag& stop);

    const NcmSplit& split() const { return split_; }
    bool goes_right(std::size_t row) const { return split_.sides[nearest_[row]] != 0; }
    std::uint64_t n_comparisons() const { return n_comparisons_; }

  private:
    void draw_classes(std::size_t n_present, Stream& stream);
    void place_centroids(const NodeSamples& node);
    void mean_of(const NodeSamples& node, const ClassRange& range, float* mean);
    void assign(const NodeSamples& node, const StopFlag& stop);
    void count(const NodeSamples& node);

    const Samples& samples_;
    const NcmRules rules_;
    const Kernels& kernels_;
    GainScorer scorer_;
    Colourings colourings_;
    CountTable table_;
    NcmSplit split_;
    std::vector<std::int32_t> drawn_;
    std::vector<std::uint16_t> nearest_;
    std::vector<const float*> row_vectors_;
    std::vector<const float*> centroid_vectors_;
    AlignedVector<float> means_;
    AlignedVector<float> partial_sum_;
    std::vector<double> sum_;
    std::uint64_t n_comparisons_ = 0;
};

}  // namespace evergrow
