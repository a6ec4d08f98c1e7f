#include "grow/forest_grower.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "grow/grower.hpp"
#include "tree/class_counts.hpp"

namespace evergrow {
namespace {

// Samples by which the spread of the features is judged.
constexpr std::size_t kJudgedRows = 256;
// With a byte per feature, features are lost next to one that is more than this times as large.
constexpr double kWidestSpread = 32;

// The root mean square of every feature that is not always zero.
std::vector<double> sizes_of_features(const Samples& samples,
                                      const std::vector<std::int32_t>& rows) {
    std::vector<double> squares(samples.n_features());
    AlignedVector<float> buffer(samples.width());
    const std::size_t step = std::max<std::size_t>(1, rows.size() / kJudgedRows);
    for (std::size_t i = 0; i < rows.size(); i += step) {
        const float* row = samples.read(rows[i], buffer.data());
        for (std::size_t f = 0; f < squares.size(); ++f)
            squares[f] += static_cast<double>(row[f]) * static_cast<double>(row[f]);
    }
    std::vector<double> sizes;
    for (const double square : squares)
        if (square > 0) sizes.push_back(std::sqrt(square));
    return sizes;
}

// Class means have bytes unless their features are of very different size. `rows` are sorted by
// class, so that samples of all classes are judged.
VectorFormat choose_format(SplitKind kind, const Samples& samples,
                           const std::vector<std::int32_t>& rows) {
    if (format_for(kind) == VectorFormat::kHalves) return VectorFormat::kHalves;
    std::vector<double> sizes = sizes_of_features(samples, rows);
    if (sizes.empty()) return format_for(kind);
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::nth_element(sizes.begin(), middle, sizes.end());
    const double largest = *std::max_element(middle, sizes.end());
    return largest > kWidestSpread * *middle ? VectorFormat::kHalves : format_for(kind);
}

// At least one.
std::size_t rows_of_share(double share, std::size_t n) {
    return std::max<std::size_t>(
        1, static_cast<std::size_t>(std::llround(share * static_cast<double>(n))));
}

// What a thread reuses for all of its trees. A tree is copied when it is complete: growing each in
// new arrays would spend a sixth of the time on fresh memory pages.
struct WorkerState {
    WorkerState(const Samples& samples, const GrowRequest& request, const EntropyTable& n_log_n,
                VectorFormat format)
        : grower(samples, request.n_classes, request.rules, n_log_n),
          tree(kind_of_split(request.rules.proposer), VectorCodec(format, samples.width())) {}

    // The tree, as a packed copy or as it is.
    std::shared_ptr<const Tree> finish(bool is_packed) {
        if (is_packed) return std::make_shared<const Tree>(tree.packed());
        auto grown = std::make_shared<const Tree>(std::move(tree));
        tree = Tree(grown->kind(), grown->codec());
        return grown;
    }

    Grower grower;
    Tree tree;
    std::vector<ClassCount> counts;
};

}  // namespace

std::optional<Forest> grow_forest(std::shared_ptr<const Samples> samples,
                                  const GrowRequest& request, std::size_t n_threads,
                                  const Poll& poll) {
    n_threads = std::min(n_threads, request.n_trees);
    const std::vector<std::int32_t> sorted = rows_by_class(*samples);
    const RowWeights weights{*samples, request.class_weights};
    // A tree draws the same share of the copies as it would of the samples.
    const double share =
        static_cast<double>(request.sampling.n_rows) / static_cast<double>(sorted.size());
    const std::size_t n_most = rows_of_share(share, weights.most_copies(sorted));
    const auto n_log_n =
        std::make_shared<const EntropyTable>(std::min(n_most, EntropyTable::kMaxSamples + 1));
    const VectorFormat format =
        choose_format(kind_of_split(request.rules.proposer), *samples, sorted);
    std::vector<std::shared_ptr<const Tree>> trees(request.n_trees);
    std::vector<std::unique_ptr<WorkerState>> workers(n_threads);
    const bool finished = run_parallel(
        request.n_trees, n_threads,
        [&](std::size_t index, std::size_t worker, const StopFlag& stop) {
            if (!workers[worker])
                workers[worker] =
                    std::make_unique<WorkerState>(*samples, request, *n_log_n, format);
            WorkerState& state = *workers[worker];
            const std::uint64_t key = tree_key(request.seed, request.first_tree + index, 0);
            const std::vector<std::int32_t> copies = repeat_rows(sorted, weights, key);
            // All weights of a tree's samples may be small; it needs one row at least.
            const std::vector<std::int32_t>& drawable = copies.empty() ? sorted : copies;
            std::vector<std::int32_t> rows = draw_rows(
                drawable,
                RowSampling{rows_of_share(share, copies.size()), request.sampling.replace},
                Stream(purpose_key(key, Purpose::kRows)));
            state.tree.reset();
            count_classes(*samples, rows, state.counts);
            state.tree.set_counts(kRoot, state.counts.data(), state.counts.size());
            state.grower.grow(state.tree, kRoot, rows, purpose_key(key, Purpose::kNodes), stop);
            trees[index] = state.finish(request.packs_trees);
        },
        poll);
    if (!finished) return std::nullopt;
    return Forest{std::move(samples), std::move(trees), request.n_classes, n_log_n};
}

}  // namespace evergrow
