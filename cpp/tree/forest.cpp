#include "tree/forest.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace evergrow {

std::size_t Forest::n_bytes() const {
    std::size_t sum = 0;
    for (const auto& tree : trees) sum += tree->n_bytes();
    return sum;
}

std::vector<std::uint64_t> Forest::n_comparisons() const {
    std::vector<std::uint64_t> counts;
    for (const auto& tree : trees) counts.push_back(tree->n_comparisons);
    return counts;
}

bool Forest::keeps_rows() const {
    for (const auto& tree : trees)
        for (std::size_t i = 0; i < tree->node_limit(); ++i)
            if (tree->node(static_cast<std::int32_t>(i)).row_size > 0) return true;
    return false;
}

Forest joined(std::shared_ptr<const Samples> samples,
              const std::vector<std::shared_ptr<Forest>>& forests) {
    if (forests.empty()) throw std::invalid_argument("there are no forests to join");
    Forest whole{std::move(samples), {}, forests[0]->n_classes, nullptr};
    for (const auto& forest : forests) {
        if (forest->n_classes != whole.n_classes)
            throw std::invalid_argument("the forests differ in their number of classes");
        if (forest->n_features() != whole.n_features() ||
            forest->samples->precision() != whole.samples->precision() ||
            forest->samples->size() > whole.samples->size())
            throw std::invalid_argument("the samples do not contain the rows of every forest");
        for (const auto& tree : forest->trees) {
            if (!whole.trees.empty() && tree->kind() != whole.trees[0]->kind())
                throw std::invalid_argument("the forests differ in the kind of their splits");
            whole.trees.push_back(tree);
        }
        // The longest table serves all.
        if (forest->n_log_n &&
            (!whole.n_log_n || forest->n_log_n->max_samples() > whole.n_log_n->max_samples()))
            whole.n_log_n = forest->n_log_n;
    }
    return whole;
}

}  // namespace evergrow
