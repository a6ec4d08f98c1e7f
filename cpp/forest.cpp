#include "forest.hpp"

#include <utility>

#include "grow.hpp"

namespace evergrow {

std::size_t Forest::n_bytes() const {
    std::size_t sum = 0;
    for (const auto& tree : trees) sum += tree->n_bytes();
    return sum;
}

std::uint64_t Forest::n_comparisons() const {
    std::uint64_t sum = 0;
    for (const auto& tree : trees) sum += tree->n_comparisons;
    return sum;
}

std::optional<Forest> grow_forest(std::shared_ptr<const Samples> samples, const ForestPlan& plan,
                                  std::size_t n_threads, const Poll& poll) {
    const EntropyTable n_log_n(plan.sampling.n_rows);
    const std::vector<std::int32_t> sorted = rows_by_class(*samples);
    std::vector<std::shared_ptr<const Tree>> trees(plan.n_trees);
    const bool finished = run_parallel(
        plan.n_trees, n_threads,
        [&](std::size_t index, const StopFlag& stop) {
            const std::uint64_t key = tree_key(plan.seed, index, 0);
            auto tree = std::make_shared<Tree>();
            tree->plant(draw_rows(sorted, plan.sampling, Stream(purpose_key(key, Purpose::kRows))));
            Grower grower(*samples, plan.rules, n_log_n);
            grower.grow(*tree, 0, purpose_key(key, Purpose::kRoot), stop);
            tree->shrink_to_fit();
            trees[index] = std::move(tree);
        },
        poll);
    if (!finished) return std::nullopt;
    return Forest{std::move(samples), std::move(trees), plan.n_classes};
}

}  // namespace evergrow
