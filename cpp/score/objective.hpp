// The objective that splits maximise [Ristin2015 Eq. 5] to [Ristin2015 Eq. 8], from class counts.
//
// A level groups the classes, for example fine classes singly or by their coarse class. A deeper
// tree of classes has more levels, which the paper does not define. Each level
// has an information gain over the samples that it counts, and the value of a split is
//
//     sum over levels of weight * gain - cost_weight * (number of centroids).
//
// An objective defines the levels, and the classes whose means a node may compare with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "score/class_hierarchy.hpp"

namespace evergrow {

// Group of a class whose samples a level does not count.
constexpr std::int32_t kNoGroup = -1;

// Classes in the same group count as one class on this level.
struct Level {
    double weight = 0;
    std::vector<std::int32_t> group;  // of every class in the list that the level is made for
    std::size_t n_groups = 0;
};

// Classes whose means a node may compare with. Each is a union of classes that are present at the
// node: a coarse class has the samples of its fine classes.
class PooledClasses {
  public:
    std::size_t size() const { return class_ids_.size(); }
    std::int32_t class_id(std::size_t i) const { return class_ids_[i]; }
    // The members of class i, as indices into the list of present classes.
    const std::size_t* begin(std::size_t i) const { return members_.data() + begins_[i]; }
    const std::size_t* end(std::size_t i) const {
        return members_.data() + (i + 1 < size() ? begins_[i + 1] : members_.size());
    }

    void clear();
    void add(std::int32_t class_id) {
        class_ids_.push_back(class_id);
        begins_.push_back(members_.size());
    }
    // Adds a member to the class that was added last.
    void join(std::size_t member) { members_.push_back(member); }

  private:
    std::vector<std::int32_t> class_ids_;
    std::vector<std::size_t> begins_;
    std::vector<std::size_t> members_;
};

class Objective {
  public:
    // A name in the table of score/objective.cpp; throws std::invalid_argument for other names.
    Objective(const std::string& name, std::shared_ptr<const ClassHierarchy> hierarchy,
              double coarse_weight, bool coarse_means);

    // The levels of a list of different classes.
    void make_levels(const std::vector<std::int32_t>& classes, std::vector<Level>& levels) const;
    // The classes whose means a node may compare with, given the classes present. Both are sorted.
    void pool(const std::vector<std::int32_t>& present, PooledClasses& pooled) const;

  private:
    struct Entry;

    std::shared_ptr<const ClassHierarchy> hierarchy_;
    double coarse_weight_;
    bool coarse_means_;
    const Entry* entry_;
};

// Counts per group from counts per class.
void add_up(const Level& level, const std::vector<std::int32_t>& by_class,
            std::vector<std::int32_t>& by_group);

// The factor from n * gain in fixed point to the weighted gain of one level [Ristin2015 Eq. 6];
// zero without samples.
double scale_of_gain(const Level& level, std::int32_t n);

}  // namespace evergrow
