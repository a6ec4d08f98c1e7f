#include "score/class_hierarchy.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace evergrow {

ClassHierarchy::ClassHierarchy(std::vector<std::int32_t> parents)
    : parents_(std::move(parents)), depths_(parents_.size(), 0), children_(parents_.size()) {
    for (std::size_t c = 0; c < parents_.size(); ++c) {
        const auto parent = static_cast<std::size_t>(parents_[c]);
        if (parent >= parents_.size())
            throw std::invalid_argument("the parent of class " + std::to_string(c) +
                                        " must be a class");
        if (parent != c) children_[parent].push_back(static_cast<std::int32_t>(c));
    }
    // Walk down from the top level: a class that is not reached is part of a cycle.
    std::vector<std::int32_t> pending;
    std::size_t n_reached = 0;
    for (std::size_t c = 0; c < parents_.size(); ++c)
        if (static_cast<std::size_t>(parents_[c]) == c)
            pending.push_back(static_cast<std::int32_t>(c));
    while (!pending.empty()) {
        const std::int32_t c = pending.back();
        pending.pop_back();
        ++n_reached;
        n_levels_ = std::max(n_levels_, depth(c) + 1);
        for (const std::int32_t child : children(c)) {
            depths_[static_cast<std::size_t>(child)] = depth(c) + 1;
            pending.push_back(child);
        }
    }
    if (n_reached != parents_.size())
        throw std::invalid_argument(
            "the parents of classes must not form a cycle: the topmost class is its own parent");
}

}  // namespace evergrow
