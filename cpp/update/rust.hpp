// Reuse subtree (RUST): chosen nodes take the means of classes that are new to them, and stored
// rows that are nearest to such a mean may change sides [Ristin2014 Sec. 4d].
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tree/tree.hpp"
#include "update/node_edit.hpp"
#include "update/plan.hpp"
#include "update/tree_context.hpp"

namespace evergrow {

std::unique_ptr<NodeDecider> make_rust(const Tree& tree, const TreeContext& context,
                                       const std::vector<std::int32_t>& batch,
                                       UpdateReport& report);

}  // namespace evergrow
