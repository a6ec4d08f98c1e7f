// What a split is worth: Eq. (5) to (8) of Ristin 2015, as functions of counts.
//
// Levels are ways to see the classes, such as fine and coarse. Each has a gain of its own, over the
// samples that it counts, and a split is worth
//
//     sum over levels of weight * gain - cost_weight * (centroids that it compares with).
//
// An objective says which levels there are, and whose means are worth comparing with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "score/class_hierarchy.hpp"

namespace evergrow {

// Group of a class whose samples a level leaves out.
constexpr std::int32_t kNoGroup = -1;

// Classes that a level does not tell apart share a group.
struct Level {
    double weight = 0;
    std::vector<std::int32_t> group;  // of every class in the list that the level was made for
    std::size_t n_groups = 0;
};

// Classes whose means a node may compare with: of each, which of the classes present its samples
// have. A coarse class has the samples of its fine ones.
class PooledClasses {
  public:
    std::size_t size() const { return class_ids_.size(); }
    std::int32_t class_id(std::size_t i) const { return class_ids_[i]; }
    // Its members are places in the list of the classes present.
    const std::size_t* begin(std::size_t i) const { return members_.data() + begins_[i]; }
    const std::size_t* end(std::size_t i) const {
        return members_.data() + (i + 1 < size() ? begins_[i + 1] : members_.size());
    }

    void clear();
    void add(std::int32_t class_id) {
        class_ids_.push_back(class_id);
        begins_.push_back(members_.size());
    }
    // One more member of the class added last.
    void join(std::size_t member) { members_.push_back(member); }

  private:
    std::vector<std::int32_t> class_ids_;
    std::vector<std::size_t> begins_;
    std::vector<std::size_t> members_;
};

class Objective {
  public:
    // A name in the table of score/objective.cpp; throws std::invalid_argument if it is in none.
    Objective(const std::string& name, std::shared_ptr<const ClassHierarchy> hierarchy,
              double coarse_weight, bool coarse_means);

    // The levels on which it sees a list of different classes.
    void see(const std::vector<std::int32_t>& classes, std::vector<Level>& levels) const;
    // Whose means it wants compared where these classes, sorted, are present; sorted.
    void pool(const std::vector<std::int32_t>& present, PooledClasses& pooled) const;

  private:
    struct Entry;

    std::shared_ptr<const ClassHierarchy> hierarchy_;
    double coarse_weight_;
    bool coarse_means_;
    const Entry* entry_;
};

// n of every group from n of every class.
void add_up(const Level& level, const std::vector<std::int32_t>& by_class,
            std::vector<std::int32_t>& by_group);

// The weighted gain of one level, Eq. (6) of Ristin 2015, is this times n * gain in fixed point; no
// samples gain nothing.
double scale_of_gain(const Level& level, std::int32_t n);

}  // namespace evergrow
