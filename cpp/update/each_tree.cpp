#include "update/each_tree.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace evergrow {
namespace {

// A table that reaches at least so far. It doubles, so that a growing forest seldom makes one.
std::shared_ptr<const EntropyTable> table_for(const Forest& forest, std::size_t n_rows) {
    if (forest.n_log_n && forest.n_log_n->max_samples() >= n_rows) return forest.n_log_n;
    const std::size_t room = std::max(n_rows, std::min(2 * n_rows, EntropyTable::kMaxSamples));
    return std::make_shared<const EntropyTable>(room);
}

std::size_t most_samples(const Forest& forest, std::size_t n_new) {
    std::int64_t most = 0;
    for (const auto& tree : forest.trees) {
        const Node& root = tree->node(kRoot);
        std::int64_t n = 0;
        for (std::size_t j = 0; j < static_cast<std::size_t>(root.count_size); ++j)
            n += tree->count(root, j).count;
        most = std::max(most, n);
    }
    return static_cast<std::size_t>(most) + n_new;
}

// Trees tidy themselves when a share of them is left behind by edits; a different share each, or
// all of them would tidy in the same update.
double tolerated_waste(std::size_t tree) {
    const double spread = static_cast<double>(tree) * 0.6180339887498949;
    return 0.15 + 0.15 * (spread - static_cast<double>(static_cast<std::int64_t>(spread)));
}

std::shared_ptr<Tree> tidy(Tree& tree) {
    auto tidied = std::make_shared<Tree>(tree.packed());
    tidied->scores.take(tree.scores);
    return tidied;
}

}  // namespace

RowFlags flags_of(const std::vector<std::int32_t>& rows, std::size_t n_samples) {
    RowFlags flags(n_samples, 0);
    for (const std::int32_t row : rows) flags[static_cast<std::size_t>(row)] = 1;
    return flags;
}

std::optional<Updated> for_each_tree(const Forest& forest, std::shared_ptr<const Samples> samples,
                                     const UpdatePlan& plan, std::size_t n_new,
                                     std::size_t n_threads, const Poll& poll,
                                     const TreeWork& work) {
    const std::size_t n_trees = forest.trees.size();
    n_threads = std::max<std::size_t>(1, std::min(n_threads, n_trees));
    const auto n_log_n = table_for(forest, most_samples(forest, n_new));
    std::vector<std::shared_ptr<const Tree>> trees(n_trees);
    std::vector<UpdateReport> reports(n_trees);
    std::vector<std::unique_ptr<Grower>> growers(n_threads);
    const bool finished = run_parallel(
        n_trees, n_threads,
        [&](std::size_t place, std::size_t worker, const StopFlag& stop) {
            const std::size_t index = plan.first_tree + place;
            if (!growers[worker])
                growers[worker] = std::make_unique<Grower>(*samples, plan.n_classes, plan.rules,
                                                           *n_log_n, plan.row_budget);
            auto tree = std::make_shared<Tree>(*forest.trees[place]);
            tree->scores.take(forest.trees[place]->scores);
            UpdatePlan own = plan;
            own.tree_key = tree_key(plan.seed, index, plan.update);
            const std::uint64_t before = tree->n_comparisons;
            TreeUpdate update(*tree, *samples, own, *n_log_n, stop);
            work(*tree, index, update, *growers[worker]);
            UpdateReport report = update.report();
            tree->n_comparisons += report.n_comparisons;
            report.n_comparisons = tree->n_comparisons - before;
            const auto start = std::chrono::steady_clock::now();
            if (!stop && tree->dead_share() > tolerated_waste(index)) tree = tidy(*tree);
            report.pack_seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            reports[place] = report;
            trees[place] = std::move(tree);
        },
        poll);
    if (!finished) return std::nullopt;
    Updated updated{Forest{std::move(samples), std::move(trees), plan.n_classes, n_log_n}, {}};
    for (const UpdateReport& report : reports) updated.report.add(report);
    return updated;
}

}  // namespace evergrow
