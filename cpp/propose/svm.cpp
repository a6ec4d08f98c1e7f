#include "propose/svm.hpp"

#include <algorithm>
#include <cmath>

namespace evergrow {

bool SvmProposer::propose(const NodeSamples& node, Stream stream, const StopFlag& stop) {
    if (!best_.start(node)) return false;
    draw_trained(node, stream);
    // Each training draws from a stream of its own, so none depends on how long others take.
    const std::uint64_t key = stream.next();
    colourings_.start(node.ranges.size(), n_candidates_, stream);
    n_trainings_ = 0;
    while (!stop && colourings_.next_batch()) try_batch(node, key, stop);
    return !stop && best_.found();
}

// Selection sampling (Knuth, algorithm S) where there are more samples than needed.
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
    const std::size_t at_once = projections_.most_at_once(node.n_rows);
    for (std::size_t first = colourings_.first(); first < colourings_.size() && !stop;
         first += at_once) {
        const std::size_t count = std::min(at_once, colourings_.size() - first);
        projections_.start(count);
        biases_.resize(count);
        for (std::size_t j = 0; j < count && !stop; ++j) train(first + j, j, key, stop);
        if (!stop) try_planes(node, stop);
    }
}

// One SVM between the classes that the colouring sends left and right.
void SvmProposer::train(std::size_t candidate, std::size_t j, std::uint64_t key,
                        const StopFlag& stop) {
    for (std::size_t i = 0; i < labels_.size(); ++i)
        labels_[i] =
            colourings_.goes_right(candidate, static_cast<std::size_t>(class_of_[i])) ? 1 : -1;
    const std::uint64_t before = svm_.n_products();
    svm_.train(labels_, Stream(derive(key, n_trainings_++)), stop);
    n_comparisons_ += svm_.n_products() - before;
    float largest = 0;
    for (std::size_t i = 0; i < width_; ++i)
        largest = std::max(largest, std::abs(svm_.weights()[i]));
    // Half precision is finest where the largest weight is 1; the side of the plane stays. Without
    // weights there is no plane: the bias is no number and the candidate not taken.
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
        // From the weights as they were rounded, so that the plane stays where the samples are.
        const float threshold =
            kernels().dot_full(svm_.centre(), projections_.vector(j), width_) - biases_[j];
        if (best_.offer(projections_.values(j), threshold))
            projections_.write_split(j, threshold, split_);
    }
}

}  // namespace evergrow
