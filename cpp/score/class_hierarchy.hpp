// A tree of classes, of any depth. A class of the top level is its own parent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evergrow {

// A sample has the finest class that is known for it, so the count of a class with finer ones is
// that of its samples without a finer class. With two levels, the classes of the top level are the
// coarse ones of [Ristin2015 Sec. 4], and the others the fine ones.
class ClassHierarchy {
  public:
    // Flat: no class has finer ones.
    ClassHierarchy() = default;
    // The parent of every class. Throws std::invalid_argument if the classes are not a tree.
    explicit ClassHierarchy(std::vector<std::int32_t> parents);

    bool is_flat() const { return parents_.empty(); }
    std::size_t size() const { return parents_.size(); }
    std::int32_t parent(std::int32_t c) const { return parents_[static_cast<std::size_t>(c)]; }
    // Number of classes above a class.
    std::size_t depth(std::int32_t c) const { return depths_[static_cast<std::size_t>(c)]; }
    // The largest depth plus one, at least 2: the paper has a coarse and a fine level, even if no
    // class has finer ones yet.
    std::size_t n_levels() const { return n_levels_; }
    // The class at this depth on the way from the top level to a class; itself if it is not deeper.
    std::int32_t ancestor(std::int32_t c, std::size_t depth) const {
        for (std::size_t d = this->depth(c); d > depth; --d) c = parent(c);
        return c;
    }
    // Whether a class has finer classes.
    bool is_divided(std::int32_t c) const { return !children(c).empty(); }
    bool is_finest(std::int32_t c) const { return children(c).empty(); }
    // The classes whose parent is this one, in order.
    const std::vector<std::int32_t>& children(std::int32_t c) const {
        return children_[static_cast<std::size_t>(c)];
    }

  private:
    std::vector<std::int32_t> parents_;
    std::vector<std::size_t> depths_;
    std::vector<std::vector<std::int32_t>> children_;
    std::size_t n_levels_ = 2;
};

}  // namespace evergrow
