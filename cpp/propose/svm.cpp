#include "propose/svm.hpp"

#include <algorithm>
#include <cmath>

namespace evergrow {

bool SvmProposer::propose(const NodeSamples& node, Stream stream, const StopFlag& stop) {
    if (!best_.start(node)) return false;
    draw_trained(node, stream);
    // Each training has its own stream, so it does not depend on the number of draws of others.
    const std::uint64_t key = stream.next();
    assignments_.start(node.ranges.size(), n_candidates_, stream);
    n_trainings_ = 0;
    while (!stop && assignments_.next_batch()) try_batch(node, key, stop);
    return !stop && best_.found();
}

// Selection sampling (Knuth, algorithm S) if the node has more samples than needed.
void SvmProposer::draw_trained(const NodeSamples& node, Stream& stream) {
    trained_.clear();
    class_of_.clear();
    const std::size_t n_wanted = std::min(node.n_rows, kMaxTrained);
    for (std::size_t c = 0; c < node.ranges.size(); ++c)
        for (auto i = static_cast<std::size_t>(node.ranges[c].begin);
             i < static_cast<std::size_t>(node.ranges[c].end); ++i) {
            const std::size_t n_missing = n_wanted - trained_.size();
            if (n_wanted < node.n_rows &&
                stream.below(static_cast<std::uint32_t>(node.n_rows - i)) >= n_missing)
                continue;
            trained_.push_back(node.rows[i]);
            class_of_.push_back(static_cast<std::int32_t>(c));
        }
    svm_.set_rows(trained_.data(), trained_.size());
    labels_.resize(trained_.size());
}

void SvmProposer::try_batch(const NodeSamples& node, std::uint64_t key, const StopFlag& stop) {
    const std::size_t at_once = projections_.max_at_once(node.n_rows);
    for (std::size_t first = assignments_.first(); first < assignments_.size() && !stop;
         first += at_once) {
        const std::size_t count = std::min(at_once, assignments_.size() - first);
        projections_.start(count);
        biases_.resize(count);
        for (std::size_t j = 0; j < count && !stop; ++j) train(first + j, j, key, stop);
        if (!stop) try_planes(node, stop);
    }
}

// Trains one SVM between the classes that a candidate sends left and right.
void SvmProposer::train(std::size_t candidate, std::size_t j, std::uint64_t key,
                        const StopFlag& stop) {
    for (std::size_t i = 0; i < labels_.size(); ++i)
        labels_[i] =
            assignments_.goes_right(candidate, static_cast<std::size_t>(class_of_[i])) ? 1 : -1;
    const std::uint64_t before = svm_.n_products();
    svm_.train(labels_, Stream(derive(key, n_trainings_++)), stop);
    n_comparisons_ += svm_.n_products() - before;
    float largest = 0;
    for (std::size_t i = 0; i < width_; ++i)
        largest = std::max(largest, std::abs(svm_.weights()[i]));
    // Scaled to a largest weight of 1, which half precision represents well; the plane is the same.
    // If all weights are zero, the bias is not finite and the candidate is rejected.
    float* weights = projections_.vector(j);
    if (largest > 0)
        for (std::size_t i = 0; i < width_; ++i) weights[i] = svm_.weights()[i] / largest;
    biases_[j] = svm_.bias() / largest;
}

void SvmProposer::try_planes(const NodeSamples& node, const StopFlag& stop) {
    projections_.compute(node, stop);
    if (stop) return;
    n_comparisons_ += projections_.count() * node.n_rows;
    for (std::size_t j = 0; j < projections_.count() && !stop; ++j) {
        // From the rounded weights, so that the plane passes through the same point.
        const float threshold =
            kernels().dot_full(svm_.centre(), projections_.vector(j), width_) - biases_[j];
        if (best_.offer(projections_.values(j), threshold))
            projections_.write_split(j, threshold, split_);
    }
}

}  // namespace evergrow
