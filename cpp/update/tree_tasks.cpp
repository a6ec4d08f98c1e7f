#include "update/tree_tasks.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "run/stopwatch.hpp"

namespace evergrow {
namespace {

// A table for at least this many rows. Its size doubles, so that a growing forest seldom makes one.
std::shared_ptr<const EntropyTable> table_for(const Forest& forest, std::size_t n_rows) {
    if (forest.n_log_n && forest.n_log_n->max_samples() >= n_rows) return forest.n_log_n;
    const std::size_t size = std::max(n_rows, std::min(2 * n_rows, EntropyTable::kMaxSamples));
    return std::make_shared<const EntropyTable>(size);
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

// Share of dead entries at which a tree is packed. It differs between trees, so that they are not
// all packed in the same update.
double tolerated_dead_share(std::size_t tree) {
    const double spread = static_cast<double>(tree) * 0.6180339887498949;
    return 0.15 + 0.15 * (spread - static_cast<double>(static_cast<std::int64_t>(spread)));
}

void add(const UpdateReport& one, UpdateReport& sum) {
    sum.n_chosen += one.n_chosen;
    sum.n_edited += one.n_edited;
    sum.n_cut += one.n_cut;
    sum.n_grown += one.n_grown;
    sum.n_added += one.n_added;
    sum.n_rerouted += one.n_rerouted;
    sum.n_comparisons += one.n_comparisons;
    sum.pass_seconds += one.pass_seconds;
    sum.grow_seconds += one.grow_seconds;
    sum.pack_seconds += one.pack_seconds;
}

void pack_if_worthwhile(std::shared_ptr<Tree>& tree, std::size_t index, UpdateReport& report) {
    const Stopwatch watch(report.pack_seconds);
    if (tree->dead_share() <= tolerated_dead_share(index)) return;
    auto packed = std::make_shared<Tree>(tree->packed());
    packed->score_cache.take_from(tree->score_cache);
    tree = std::move(packed);
}

}  // namespace

std::optional<Updated> update_trees(const Forest& forest, std::shared_ptr<const Samples> samples,
                                    const UpdatePlan& plan, std::size_t n_new,
                                    std::size_t n_threads, const Poll& poll, const TreeWork& work) {
    const std::size_t n_trees = forest.trees.size();
    n_threads = std::max<std::size_t>(1, std::min(n_threads, n_trees));
    const auto n_log_n = table_for(forest, most_samples(forest, n_new));
    std::vector<std::shared_ptr<const Tree>> trees(n_trees);
    std::vector<UpdateReport> reports(n_trees);
    std::vector<std::unique_ptr<Grower>> growers(n_threads);
    const bool finished = run_parallel(
        n_trees, n_threads,
        [&](std::size_t index, std::size_t worker, const StopFlag& stop) {
            if (!growers[worker])
                growers[worker] =
                    std::make_unique<Grower>(*samples, plan.n_classes, plan.rules, *n_log_n);
            auto tree = std::make_shared<Tree>(*forest.trees[index]);
            tree->score_cache.take_from(forest.trees[index]->score_cache);
            const std::uint64_t before = tree->n_comparisons;
            UpdateReport& report = reports[index];
            const TreeContext context{*samples, plan, *n_log_n, stop,
                                      tree_key(plan.seed, index, plan.update)};
            TreeEditor editor(*tree, context, report);
            TreeTask task{index, *tree, context, editor, *growers[worker], report};
            work(task);
            // The grower has counted its own in the tree.
            tree->n_comparisons += report.n_comparisons;
            report.n_comparisons = tree->n_comparisons - before;
            if (!stop && !plan.leaves_only) pack_if_worthwhile(tree, index, report);
            trees[index] = std::move(tree);
        },
        poll);
    if (!finished) return std::nullopt;
    Updated updated{Forest{std::move(samples), std::move(trees), plan.n_classes, n_log_n}, {}};
    for (const UpdateReport& report : reports) add(report, updated.report);
    return updated;
}

}  // namespace evergrow
