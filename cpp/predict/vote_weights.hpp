// How much the vote of each tree for each class counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evergrow {

// A tree that was grown before the first sample of a class came has no split that was made for the
// class. Its vote for the class has the weight `older`, all other votes have the weight 1; and
// because it votes for the class too seldom, its votes are multiplied by `gain`. The probability of
// a class is the weighted mean over the trees, divided by the sum over the classes; where no tree
// knows a class, all of them count alike.
class VoteWeights {
  public:
    // When each tree was last grown and when each class came, as numbers of updates. Throws
    // std::invalid_argument unless there are trees, `older` is above 0 and at most 1, and `gain`
    // at least 1 and finite.
    VoteWeights(std::vector<std::int64_t> tree_grown, std::vector<std::int64_t> class_came,
                double older, double gain = 1);

    std::size_t n_trees() const { return tree_grown_.size(); }
    std::size_t n_classes() const { return class_came_.size(); }
    double weight(std::size_t tree, std::size_t class_id) const {
        return tree_grown_[tree] >= class_came_[class_id] ? 1.0 : older_ * gain_;
    }
    // The sum of the weights of a class over all trees.
    double sum(std::size_t class_id) const { return sums_[class_id]; }
    const std::vector<double>& sums() const { return sums_; }

  private:
    std::vector<std::int64_t> tree_grown_, class_came_;
    double older_, gain_;
    std::vector<double> sums_;  // by class
};

}  // namespace evergrow
