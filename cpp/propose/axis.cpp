#include "propose/axis.hpp"

#include <algorithm>
#include <numeric>

namespace evergrow {
namespace {

// Values in memory at once; a large node is read in several passes.
constexpr std::size_t kMaxValues = std::size_t{1} << 22;

}  // namespace

AxisProposer::AxisProposer(const Samples& rows, const SplitRules& rules,
                           const EntropyTable& n_log_n)
    : n_features_(rows.n_features()),
      n_candidates_(rules.n_candidates),
      best_(rules, n_log_n),
      reader_(rows) {
    split_.centroids.assign(1, Centroid{0, CentroidSource::slot(0).code(), 0, 0, 0, {}});
}

bool AxisProposer::propose(const NodeSamples& node, Stream stream, const StopFlag& stop) {
    if (!best_.start(node)) return false;
    usable_.resize(n_features_);
    std::iota(usable_.begin(), usable_.end(), 0);
    n_undrawn_ = 0;
    const std::size_t at_once = std::max<std::size_t>(1, kMaxValues / node.n_rows);
    for (std::size_t n_tried = 0; n_tried < n_candidates_ && !stop;) {
        if (n_undrawn_ == 0) start_round();
        if (n_undrawn_ == 0) break;
        draw_features(std::min({n_candidates_ - n_tried, n_undrawn_, at_once}), stream);
        read_columns(node, stop);
        if (stop) return false;
        n_tried += try_columns(node.n_rows, stop);
    }
    return !stop && best_.found();
}

// Features without a valid threshold are not drawn again.
void AxisProposer::start_round() {
    order_.swap(usable_);
    usable_.clear();
    n_undrawn_ = order_.size();
}

// Each feature is drawn together with the position of its threshold, so that the draws do not
// depend on how many features are read at once.
void AxisProposer::draw_features(std::size_t count, Stream& stream) {
    features_.clear();
    shares_.clear();
    for (std::size_t j = 0; j < count; ++j) {
        const std::uint32_t at = stream.below(static_cast<std::uint32_t>(n_undrawn_));
        std::swap(order_[at], order_[--n_undrawn_]);
        features_.push_back(order_[n_undrawn_]);
        shares_.push_back(stream.uniform());
    }
}

// Reads all drawn features in one pass over the rows, which lie scattered in memory.
void AxisProposer::read_columns(const NodeSamples& node, const StopFlag& stop) {
    columns_.resize(features_.size() * node.n_rows);
    for (std::size_t begin = 0; begin < node.n_rows && !stop; begin += RowReader::kBlock) {
        const std::size_t n = std::min(RowReader::kBlock, node.n_rows - begin);
        const float* const* rows = reader_.read(node.rows + begin, n);
        for (std::size_t j = 0; j < features_.size(); ++j) {
            float* column = columns_.data() + j * node.n_rows + begin;
            for (std::size_t i = 0; i < n; ++i) column[i] = rows[i][features_[j]];
        }
    }
    n_comparisons_ += node.n_rows * features_.size();
}

// Returns the number of features with a valid threshold.
std::size_t AxisProposer::try_columns(std::size_t n_rows, const StopFlag& stop) {
    std::size_t n_tried = 0;
    for (std::size_t j = 0; j < features_.size() && !stop; ++j) {
        const float* column = columns_.data() + j * n_rows;
        float threshold = 0;
        if (!best_.place_threshold(column, shares_[j], &threshold)) continue;
        ++n_tried;
        usable_.push_back(features_[j]);
        if (!best_.offer(column, threshold)) continue;
        split_.centroids[0].class_id = features_[j];
        split_.centroids[0].offset = threshold;
    }
    return n_tried;
}

}  // namespace evergrow
