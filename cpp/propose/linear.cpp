#include "propose/linear.hpp"

#include <algorithm>

namespace evergrow {

bool LinearProposer::propose(const NodeSamples& node, Stream stream, const StopFlag& stop) {
    if (!best_.start(node)) return false;
    const std::size_t at_once = projections_.max_at_once(node.n_rows);
    for (std::size_t n_tried = 0; n_tried < n_candidates_;) {
        const std::size_t count = std::min(at_once, n_candidates_ - n_tried);
        draw_directions(count, stream);
        projections_.compute(node, stop);
        try_directions(stop);
        if (stop) return false;
        n_comparisons_ += count * node.n_rows;
        n_tried += count;
    }
    return best_.found();
}

// Each direction is drawn together with the position of its threshold, so that the draws do not
// depend on how many are tried at once.
void LinearProposer::draw_directions(std::size_t count, Stream& stream) {
    projections_.start(count);
    shares_.resize(count);
    for (std::size_t j = 0; j < count; ++j) {
        float* direction = projections_.vector(j);
        for (std::size_t i = 0; i < n_features_; ++i)
            direction[i] = static_cast<float>(stream.normal());
        shares_[j] = stream.uniform();
    }
}

void LinearProposer::try_directions(const StopFlag& stop) {
    for (std::size_t j = 0; j < projections_.count() && !stop; ++j) {
        float threshold = 0;
        if (best_.place_threshold(projections_.values(j), shares_[j], &threshold) &&
            best_.offer(projections_.values(j), threshold))
            projections_.write_split(j, threshold, split_);
    }
}

}  // namespace evergrow
