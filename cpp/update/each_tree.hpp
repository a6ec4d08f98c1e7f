// One piece of work on every tree of a forest, which makes a new forest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "grow/grower.hpp"
#include "update/pass.hpp"
#include "update/update.hpp"

namespace evergrow {

// `index` is the place of the tree among all of the forest, whose group this may be.
using TreeWork =
    std::function<void(Tree& tree, std::size_t index, TreeUpdate& update, Grower& grower)>;

// Runs the work on a copy of every tree; nothing if the poll asked to stop. `n_new` rows at most
// come to a tree.
std::optional<Updated> for_each_tree(const Forest& forest, std::shared_ptr<const Samples> samples,
                                     const UpdatePlan& plan, std::size_t n_new,
                                     std::size_t n_threads, const Poll& poll, const TreeWork& work);

RowFlags flags_of(const std::vector<std::int32_t>& rows, std::size_t n_samples);

}  // namespace evergrow
