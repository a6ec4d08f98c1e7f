#include "regularised.hpp"

#include <algorithm>

namespace evergrow {
namespace {

// Scores at hand at once: they stay in the second-level cache.
constexpr std::size_t kScoresAtOnce = std::size_t{1} << 18;

// Rows and means that are multiplied with each other before others come: the means stay in the
// first-level cache, the rows in the second.
constexpr std::size_t kPanelRows = 128;
constexpr std::size_t kPanelFloats = 20 * 256;

std::size_t rounded_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

RegularisedProposer::RegularisedProposer(const Samples& samples, const SplitRules& rules,
                                         const EntropyTable& n_log_n)
    : width_(samples.width()),
      rules_(rules),
      objective_(rules.objective, rules.hierarchy, rules.coarse_weight, rules.coarse_means),
      pool_(samples, objective_),
      best_(rules, n_log_n),
      reader_(samples) {}

bool RegularisedProposer::propose(const NodeSamples& node, Stream stream, const StopFlag& stop) {
    const auto min_rows = 2 * static_cast<std::size_t>(rules_.min_samples_leaf);
    if (node.n_rows < min_rows || !can_gain(node)) return false;
    // Each set draws from a stream of its own, so none depends on how many rows are drawn.
    const std::uint64_t key = stream.next();
    colouring_key_ = stream.next();
    are_started_.assign(rules_.n_centroids + 1, 0);
    draw_scored(node, stream);
    pool_.fill(node, stop);
    subsets_.draw(pool_.size(), rules_.n_centroids, rules_.n_subsets, key);
    best_.start(levels_, class_ends_);
    rows_per_set_ = rounded_up(n_scored_, kScoreRows);
    if (nearest_of_sets_.size() < subsets_.size() * rows_per_set_)
        nearest_of_sets_.resize(subsets_.size() * rows_per_set_);
    const std::size_t at_once = rows_at_once();
    for (std::size_t begin = 0; begin < n_scored_ && !stop; begin += at_once) {
        const std::size_t n = std::min(at_once, n_scored_ - begin);
        measure(begin, n, stop);
        compare(begin, n, stop);
    }
    search(stop);
    if (stop || !best_.found()) return false;
    pool_.write_split(subsets_.members(best_.set()), subsets_.size_of(best_.set()), split_);
    for (std::size_t j = 0; j < split_.size(); ++j) split_.centroids[j].side = best_.sides()[j];
    if (n_scored_ == node.n_rows && n_scored_ <= at_once) {
        nearest_.resize(rows_per_set_);
        lowest_.resize(rows_per_set_);
        take_nearest(best_.set(), n_scored_, nearest_.data(), lowest_.data());
    } else {
        assign(node, stop);
    }
    return !stop;
}

// Whether there is anything to tell apart on any level.
bool RegularisedProposer::can_gain(const NodeSamples& node) {
    classes_.clear();
    for (const ClassRange& range : node.ranges) classes_.push_back(range.class_id);
    objective_.see(classes_, levels_);
    return std::any_of(levels_.begin(), levels_.end(),
                       [](const Level& level) { return level.n_groups >= 2; });
}

// Selection sampling (Knuth, algorithm S) where there are more rows than needed.
void RegularisedProposer::draw_scored(const NodeSamples& node, Stream& stream) {
    scored_ = node.rows;
    n_scored_ = node.n_rows;
    class_ends_.clear();
    if (rules_.max_scoring_samples == 0 || node.n_rows <= rules_.max_scoring_samples) {
        for (const ClassRange& range : node.ranges)
            class_ends_.push_back(static_cast<std::size_t>(range.end));
        return;
    }
    drawn_.clear();
    for (const ClassRange& range : node.ranges) {
        for (auto i = static_cast<std::size_t>(range.begin);
             i < static_cast<std::size_t>(range.end); ++i) {
            const std::size_t n_missing = rules_.max_scoring_samples - drawn_.size();
            if (stream.below(static_cast<std::uint32_t>(node.n_rows - i)) < n_missing)
                drawn_.push_back(node.rows[i]);
        }
        class_ends_.push_back(drawn_.size());
    }
    scored_ = drawn_.data();
    n_scored_ = drawn_.size();
}

std::size_t RegularisedProposer::rows_at_once() const {
    const std::size_t most = kScoresAtOnce / pool_.size() / kScoreRows * kScoreRows;
    return std::max(kScoreRows, most);
}

// Scores of scored rows [begin, begin + n) and every mean of the pool.
void RegularisedProposer::measure(std::size_t begin, std::size_t n, const StopFlag& stop) {
    // One cache line more than needed: columns a power of two apart would share few places in the
    // caches.
    stride_ = rounded_up(n, kScoreRows) + kCacheLineFloats;
    if (columns_.size() < stride_ * pool_.size()) columns_.resize(stride_ * pool_.size());
    const std::size_t n_means = std::max(std::size_t{1}, kPanelFloats / width_);
    for (std::size_t i = 0; i < n && !stop; i += kPanelRows) {
        const std::size_t size = std::min(kPanelRows, n - i);
        const float* const* rows = reader_.read(scored_ + begin + i, size);
        for (std::size_t j = 0; j < pool_.size(); j += n_means) {
            const Centroids means{pool_.vectors() + j, pool_.offsets() + j,
                                  std::min(n_means, pool_.size() - j)};
            kernels().centroid_scores(rows, size, means, width_, columns_.data() + j * stride_ + i,
                                      stride_);
        }
    }
    n_comparisons_ += n * pool_.size();
}

Colourings& RegularisedProposer::colourings(std::size_t n_centroids) {
    if (colourings_.size() <= n_centroids) colourings_.resize(n_centroids + 1);
    Colourings& own = colourings_[n_centroids];
    if (are_started_[n_centroids] != 0)
        own.rewind();
    else
        own.start(n_centroids, rules_.n_candidates, Stream(derive(colouring_key_, n_centroids)));
    are_started_[n_centroids] = 1;
    return own;
}

// The centroids nearest to the n rows just measured, in all sets.
void RegularisedProposer::compare(std::size_t begin, std::size_t n, const StopFlag& stop) {
    for (std::size_t set = 0; set < subsets_.size() && !stop; ++set)
        take_nearest(set, n, nearest_of_sets_.data() + set * rows_per_set_ + begin, nullptr);
}

// Eq. (2) of Ristin 2014 for the first n rows at hand, among one set of means.
void RegularisedProposer::take_nearest(std::size_t set, std::size_t n, std::uint16_t* nearest,
                                       float* lowest) {
    const std::size_t k = subsets_.size_of(set);
    column_of_.resize(k);
    for (std::size_t j = 0; j < k; ++j)
        column_of_[j] =
            columns_.data() + static_cast<std::size_t>(subsets_.members(set)[j]) * stride_;
    kernels().lowest_columns(column_of_.data(), k, n, nearest, lowest);
}

void RegularisedProposer::search(const StopFlag& stop) {
    for (std::size_t set = 0; set < subsets_.size() && !stop; ++set)
        best_.offer(set, subsets_.size_of(set), nearest_of_sets_.data() + set * rows_per_set_,
                    colourings(subsets_.size_of(set)), stop);
}

// Every row of a node of which only some were scored, or whose scores are not all at hand.
void RegularisedProposer::assign(const NodeSamples& node, const StopFlag& stop) {
    const std::size_t k = split_.size();
    vectors_.resize(k);
    offsets_.resize(k);
    for (std::size_t j = 0; j < k; ++j) {
        const auto place = static_cast<std::size_t>(subsets_.members(best_.set())[j]);
        vectors_[j] = pool_.vectors()[place];
        offsets_[j] = pool_.offsets()[place];
    }
    nearest_.resize(node.n_rows);
    lowest_.resize(node.n_rows);
    const Centroids centroids{vectors_.data(), offsets_.data(), k};
    for (std::size_t begin = 0; begin < node.n_rows && !stop; begin += RowReader::kBlock) {
        const std::size_t n = std::min(RowReader::kBlock, node.n_rows - begin);
        kernels().nearest_centroids(reader_.read(node.rows + begin, n), n, centroids, width_,
                                    nearest_.data() + begin, lowest_.data() + begin);
    }
    n_comparisons_ += node.n_rows * k;
}

}  // namespace evergrow
