#include "predict/vote_weights.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace evergrow {

VoteWeights::VoteWeights(std::vector<std::int64_t> tree_grown, std::vector<std::int64_t> class_came,
                         double older, double gain)
    : tree_grown_(std::move(tree_grown)),
      class_came_(std::move(class_came)),
      older_(older),
      gain_(gain) {
    if (tree_grown_.empty()) throw std::invalid_argument("tree_grown must not be empty");
    if (!(older > 0 && older <= 1))
        throw std::invalid_argument("older must be above 0 and at most 1");
    if (!(gain >= 1 && std::isfinite(gain)))
        throw std::invalid_argument("gain must be at least 1 and finite");
    std::vector<std::int64_t> grown = tree_grown_;
    std::sort(grown.begin(), grown.end());
    const auto n_trees = static_cast<double>(grown.size());
    for (std::int64_t& came : class_came_) {
        if (came > grown.back()) came = grown.front();  // no tree knows it
        const auto n_older =
            static_cast<double>(std::lower_bound(grown.begin(), grown.end(), came) - grown.begin());
        sums_.push_back((n_trees - n_older) + older_ * n_older);
    }
}

}  // namespace evergrow
