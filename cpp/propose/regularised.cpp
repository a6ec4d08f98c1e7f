#include "propose/regularised.hpp"

#include <algorithm>

namespace evergrow {
namespace {

// Scores in memory at once, few enough for the second-level cache.
constexpr std::size_t kScoresAtOnce = std::size_t{1} << 18;

// Nearest centroids in memory at once.
constexpr std::size_t kNearestAtOnce = std::size_t{1} << 24;

// Subset sizes below this keep their assignments for the whole node.
constexpr std::size_t kCachedSizes = 64;

// Block sizes for the products of rows and means: the means of a block stay in the first-level
// cache, its rows in the second.
constexpr std::size_t kPanelRows = 128;
constexpr std::size_t kPanelFloats = 20 * 256;

std::size_t rounded_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

RegularisedProposer::RegularisedProposer(const Samples& rows, const SplitRules& rules,
                                         const EntropyTable& n_log_n)
    : width_(rows.width()),
      rules_(rules),
      objective_(rules.objective, rules.hierarchy, rules.coarse_weight, rules.coarse_means),
      pool_(rows, objective_),
      best_(rules, n_log_n),
      reader_(rows) {}

bool RegularisedProposer::propose(const NodeSamples& node, Stream stream, const StopFlag& stop) {
    const auto min_rows = 2 * static_cast<std::size_t>(rules_.min_samples_leaf);
    if (node.n_rows < min_rows || !can_gain(node)) return false;
    // Each subset has its own stream, so it does not depend on the number of rows drawn.
    const std::uint64_t key = stream.next();
    assignment_key_ = stream.next();
    are_started_.assign(kCachedSizes + 1, 0);
    pool_.fill(node, stop);
    subsets_.draw(pool_.size(), rules_.n_centroids, rules_.n_subsets, key);
    if (rules_.max_scoring_samples == 0 || node.n_rows <= rules_.max_scoring_samples) {
        score_all(node);
        return find_split(node, stop);
    }
    draw_scored(node, stream);
    if (find_split(node, stop)) return true;
    // A random part of the rows may not show a split that sends few of many rows to one side.
    score_all(node);
    return find_split(node, stop);
}

// Finds the best split by the scored rows. If they are a part of all rows, each side needs the same
// share of them, at least one; all rows are then checked against the minimum of a leaf.
bool RegularisedProposer::find_split(const NodeSamples& node, const StopFlag& stop) {
    const auto least = static_cast<std::size_t>(rules_.min_samples_leaf);
    best_.start(levels_, class_ends_, (least * n_scored_ + node.n_rows - 1) / node.n_rows);
    rows_per_set_ = rounded_up(n_scored_, kScoreRows);
    const std::size_t at_once = rows_at_once();
    const std::size_t sets_at_once = std::max(std::size_t{1}, kNearestAtOnce / rows_per_set_);
    for (std::size_t first = 0; first < subsets_.size() && !stop; first += sets_at_once)
        score_sets(first, std::min(sets_at_once, subsets_.size() - first), at_once, stop);
    if (stop || !best_.found()) return false;
    pool_.write_split(subsets_.members(best_.set()), subsets_.size_of(best_.set()), split_);
    for (std::size_t j = 0; j < split_.size(); ++j) split_.centroids[j].side = best_.sides()[j];
    if (n_scored_ == node.n_rows && n_scored_ <= at_once) {
        nearest_.resize(rows_per_set_);
        lowest_.resize(rows_per_set_);
        take_nearest(best_.set(), n_scored_, nearest_.data(), lowest_.data());
        return true;
    }
    find_nearest(node, stop);
    std::size_t n_right = 0;
    for (std::size_t row = 0; row < node.n_rows && !stop; ++row) n_right += goes_right(row) ? 1 : 0;
    return !stop && n_right >= least && node.n_rows - n_right >= least;
}

// Scores some subsets at a time, on some rows at a time, to bound the memory.
void RegularisedProposer::score_sets(std::size_t first, std::size_t n_sets, std::size_t at_once,
                                     const StopFlag& stop) {
    if (nearest_of_sets_.size() < n_sets * rows_per_set_)
        nearest_of_sets_.resize(n_sets * rows_per_set_);
    for (std::size_t begin = 0; begin < n_scored_ && !stop; begin += at_once) {
        const std::size_t n = std::min(at_once, n_scored_ - begin);
        if (first == 0 || n < n_scored_) compute_scores(begin, n, stop);
        for (std::size_t set = 0; set < n_sets && !stop; ++set)
            take_nearest(first + set, n, nearest_of_sets_.data() + set * rows_per_set_ + begin,
                         nullptr);
    }
    for (std::size_t set = 0; set < n_sets && !stop; ++set) {
        const std::size_t size = subsets_.size_of(first + set);
        best_.offer(first + set, size, nearest_of_sets_.data() + set * rows_per_set_,
                    assignments(size), stop);
    }
}

// Whether any level has at least two groups.
bool RegularisedProposer::can_gain(const NodeSamples& node) {
    classes_.clear();
    for (const ClassRange& range : node.ranges) classes_.push_back(range.class_id);
    objective_.make_levels(classes_, levels_);
    return std::any_of(levels_.begin(), levels_.end(),
                       [](const Level& level) { return level.n_groups >= 2; });
}

void RegularisedProposer::score_all(const NodeSamples& node) {
    scored_ = node.rows;
    n_scored_ = node.n_rows;
    class_ends_.clear();
    for (const ClassRange& range : node.ranges)
        class_ends_.push_back(static_cast<std::size_t>(range.end));
}

// Selection sampling (Knuth, algorithm S).
void RegularisedProposer::draw_scored(const NodeSamples& node, Stream& stream) {
    class_ends_.clear();
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

// Computes the scores of scored rows [begin, begin + n) and every mean of the pool.
void RegularisedProposer::compute_scores(std::size_t begin, std::size_t n, const StopFlag& stop) {
    // One cache line more than needed: columns a power of two apart would compete for the same
    // lines of the cache.
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

// Assignments for subsets of this size. Large sizes, with few subsets each, share one entry.
SideAssignments& RegularisedProposer::assignments(std::size_t n_centroids) {
    const std::size_t place = std::min(n_centroids, kCachedSizes);
    if (assignments_.size() <= place) assignments_.resize(place + 1);
    SideAssignments& own = assignments_[place];
    if (place < kCachedSizes && are_started_[place] != 0)
        own.rewind();
    else
        own.start(n_centroids, rules_.n_candidates, Stream(derive(assignment_key_, n_centroids)));
    are_started_[place] = 1;
    return own;
}

// The nearest mean of one subset [Ristin2014 Eq. 2] for the first n rows with scores in memory.
void RegularisedProposer::take_nearest(std::size_t set, std::size_t n, std::uint16_t* nearest,
                                       float* lowest) {
    const std::size_t k = subsets_.size_of(set);
    column_of_.resize(k);
    for (std::size_t j = 0; j < k; ++j)
        column_of_[j] =
            columns_.data() + static_cast<std::size_t>(subsets_.members(set)[j]) * stride_;
    kernels().lowest_columns(column_of_.data(), k, n, nearest, lowest);
}

// The nearest mean of every row, where only some rows were scored or kept their scores.
void RegularisedProposer::find_nearest(const NodeSamples& node, const StopFlag& stop) {
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
