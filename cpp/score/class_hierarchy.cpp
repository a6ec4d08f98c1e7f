#include "score/class_hierarchy.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace evergrow {

ClassHierarchy::ClassHierarchy(std::vector<std::int32_t> parents)
    : parents_(std::move(parents)), divided_(parents_.size(), 0), finest_of_(parents_.size()) {
    for (std::size_t c = 0; c < parents_.size(); ++c) {
        const auto parent = static_cast<std::size_t>(parents_[c]);
        if (parent >= parents_.size() || parents_[parent] != parents_[c])
            throw std::invalid_argument("the parent of class " + std::to_string(c) +
                                        " must be a coarse class, which is its own parent");
        if (parent == c) continue;
        divided_[parent] = 1;
        finest_of_[parent].push_back(static_cast<std::int32_t>(c));
    }
    for (std::size_t c = 0; c < parents_.size(); ++c)
        if (is_finest(static_cast<std::int32_t>(c)))
            finest_of_[c].assign(1, static_cast<std::int32_t>(c));
}

}  // namespace evergrow
