// The same work on every tree of a forest, in parallel.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "grow/grower.hpp"
#include "update/tree_context.hpp"
#include "update/tree_editor.hpp"
#include "update/update.hpp"

namespace evergrow {

// One tree of an update: a copy of a tree of the old forest, and what the work on it may use.
struct TreeTask {
    std::size_t index;  // of the tree in the whole forest
    Tree& tree;
    const TreeContext& context;
    TreeEditor& editor;
    Grower& grower;
    UpdateReport& report;
};

using TreeWork = std::function<void(TreeTask& task)>;

// Makes a new forest by doing the work on a copy of every tree; nothing if the poll asked to stop.
// A tree gets at most `n_new` more rows.
std::optional<Updated> update_trees(const Forest& forest, std::shared_ptr<const Samples> samples,
                                    const UpdatePlan& plan, std::size_t n_new,
                                    std::size_t n_threads, const Poll& poll, const TreeWork& work);

}  // namespace evergrow
