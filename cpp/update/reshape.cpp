// New names for classes and new numbers for rows; no sample moves.
#include <utility>

#include "update/tree_edits.hpp"
#include "update/update.hpp"

namespace evergrow {

Forest relabel(const Forest& forest, std::shared_ptr<const Samples> samples,
               const std::vector<std::int32_t>& map, std::size_t n_classes) {
    Forest renamed{std::move(samples), {}, n_classes, forest.n_log_n};
    for (const auto& old : forest.trees) {
        Tree tree = *old;
        relabel_tree(tree, *renamed.samples, map);
        renamed.trees.push_back(std::make_shared<const Tree>(tree.packed()));
    }
    return renamed;
}

Forest compact(const Forest& forest) {
    Forest tidy{forest.samples, {}, forest.n_classes, forest.n_log_n};
    std::vector<std::int32_t> number;
    if (forest.samples->n_removed() > 0 && forest.samples->can_be_referred_to())
        tidy.samples = std::make_shared<const Samples>(forest.samples->without_gaps(number));
    for (const auto& old : forest.trees) {
        Tree tree = *old;
        if (!number.empty()) renumber_rows(tree, number);
        tidy.trees.push_back(std::make_shared<const Tree>(tree.packed()));
    }
    return tidy;
}

}  // namespace evergrow
