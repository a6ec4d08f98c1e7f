// The end of an update of a tree: leaves that became too small are cut, leaves that changed grow.
#pragma once

#include <cstdint>
#include <vector>

#include "update/tree_tasks.hpp"

namespace evergrow {

// Makes the whole tree one leaf that also holds these new rows.
void start_again(TreeTask& task, const std::vector<std::int32_t>& rows);

// Cuts leaves that became too small, then grows the leaves that changed.
void regrow(TreeTask& task);

}  // namespace evergrow
