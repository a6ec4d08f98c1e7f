#include "forest.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "class_counts.hpp"
#include "grow.hpp"

namespace evergrow {
namespace {

// Where a thread grows its trees, one after the other, before each is copied to memory of its
// own: arrays that grow anew for every tree would spend a sixth of the time on fresh pages.
struct Nursery {
    Nursery(const Samples& samples, const ForestPlan& plan, const EntropyTable& n_log_n)
        : grower(samples, plan.n_classes, plan.rules, n_log_n, plan.row_budget),
          tree(kind_of_split(plan.rules.proposer), samples.width()) {}

    // The tree that was grown, as a copy or as it is.
    std::shared_ptr<const Tree> leave(bool is_packed) {
        if (is_packed) return std::make_shared<const Tree>(tree.packed());
        auto grown = std::make_shared<const Tree>(std::move(tree));
        tree = Tree(grown->kind(), grown->width());
        return grown;
    }

    Grower grower;
    Tree tree;
    std::vector<ClassCount> counts;
};

}  // namespace

std::size_t Forest::n_bytes() const {
    std::size_t sum = 0;
    for (const auto& tree : trees) sum += tree->n_bytes();
    return sum;
}

bool Forest::keeps_rows() const {
    for (const auto& tree : trees)
        for (std::size_t i = 0; i < tree->node_limit(); ++i)
            if (tree->node(static_cast<std::int32_t>(i)).row_size > 0) return true;
    return false;
}

Forest Forest::group(std::size_t first_tree, std::size_t n_trees) const {
    if (first_tree > trees.size() || n_trees > trees.size() - first_tree)
        throw std::invalid_argument("there are no such trees");
    const auto first = trees.begin() + static_cast<std::ptrdiff_t>(first_tree);
    return Forest{
        samples, {first, first + static_cast<std::ptrdiff_t>(n_trees)}, n_classes, n_log_n};
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
            throw std::invalid_argument("the samples do not hold the rows of every forest");
        for (const auto& tree : forest->trees) {
            if (!whole.trees.empty() && tree->kind() != whole.trees[0]->kind())
                throw std::invalid_argument("the forests differ in how their nodes split");
            whole.trees.push_back(tree);
        }
        // Of one table and a longer one the longer serves all.
        if (forest->n_log_n &&
            (!whole.n_log_n || forest->n_log_n->max_samples() > whole.n_log_n->max_samples()))
            whole.n_log_n = forest->n_log_n;
    }
    return whole;
}

std::optional<Forest> grow_forest(std::shared_ptr<const Samples> samples, const ForestPlan& plan,
                                  std::size_t n_threads, const Poll& poll) {
    n_threads = std::min(n_threads, plan.n_trees);
    const std::vector<std::int32_t> sorted = rows_by_class(*samples);
    const std::size_t n_wanted = std::min(plan.sampling.n_rows, EntropyTable::kMaxSamples + 1);
    const auto n_log_n = std::make_shared<const EntropyTable>(n_wanted);
    std::vector<std::shared_ptr<const Tree>> trees(plan.n_trees);
    std::vector<std::unique_ptr<Nursery>> nurseries(n_threads);
    const bool finished = run_parallel(
        plan.n_trees, n_threads,
        [&](std::size_t index, std::size_t worker, const StopFlag& stop) {
            if (!nurseries[worker])
                nurseries[worker] = std::make_unique<Nursery>(*samples, plan, *n_log_n);
            Nursery& nursery = *nurseries[worker];
            const std::uint64_t key = tree_key(plan.seed, plan.first_tree + index, 0);
            std::vector<std::int32_t> rows =
                draw_rows(sorted, plan.sampling, Stream(purpose_key(key, Purpose::kRows)));
            nursery.tree.plant();
            count_classes(*samples, rows, nursery.counts);
            nursery.tree.set_counts(kRoot, nursery.counts.data(), nursery.counts.size());
            nursery.grower.grow(nursery.tree, kRoot, rows, purpose_key(key, Purpose::kNodes), stop);
            trees[index] = nursery.leave(plan.packs_trees);
        },
        poll);
    if (!finished) return std::nullopt;
    return Forest{std::move(samples), std::move(trees), plan.n_classes, n_log_n};
}

}  // namespace evergrow
