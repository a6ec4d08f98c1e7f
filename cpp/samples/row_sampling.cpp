#include "samples/row_sampling.hpp"

#include <algorithm>
#include <cmath>

namespace evergrow {
namespace {

std::vector<std::int32_t> draw_with_replacement(const std::vector<std::int32_t>& sorted,
                                                std::size_t n_wanted, Stream& stream) {
    const auto n = static_cast<std::uint32_t>(sorted.size());
    std::vector<std::uint32_t> places(n_wanted);
    for (std::uint32_t& place : places) place = stream.below(n);
    std::sort(places.begin(), places.end());
    std::vector<std::int32_t> rows(n_wanted);
    for (std::size_t i = 0; i < n_wanted; ++i) rows[i] = sorted[places[i]];
    return rows;
}

// Selection sampling (Knuth, algorithm S): one ordered pass, every subset equally likely.
std::vector<std::int32_t> draw_without_replacement(const std::vector<std::int32_t>& sorted,
                                                   std::size_t n_wanted, Stream& stream) {
    std::vector<std::int32_t> rows;
    rows.reserve(n_wanted);
    for (std::size_t i = 0; rows.size() < n_wanted; ++i)
        if (stream.below(static_cast<std::uint32_t>(sorted.size() - i)) < n_wanted - rows.size())
            rows.push_back(sorted[i]);
    return rows;
}

}  // namespace

double RowWeights::of(std::int32_t row) const {
    const double own = samples.weight_of(row);
    return of_classes.empty() ? own
                              : own * of_classes[static_cast<std::size_t>(samples.class_of(row))];
}

std::size_t RowWeights::most_copies(const std::vector<std::int32_t>& rows) const {
    if (are_one()) return rows.size();
    double most = 0;
    for (const std::int32_t row : rows) most += std::ceil(of(row));
    return static_cast<std::size_t>(most);
}

std::vector<std::int32_t> repeat_rows(const std::vector<std::int32_t>& sorted,
                                      const RowWeights& weights, std::uint64_t key) {
    if (weights.are_one()) return sorted;
    const std::uint64_t copies_key = purpose_key(key, Purpose::kCopies);
    std::vector<std::int32_t> rows;
    rows.reserve(sorted.size());
    for (const std::int32_t row : sorted) {
        const double weight = weights.of(row), whole = std::floor(weight);
        // By id, because the numbers of rows change when samples are compacted.
        const auto id = static_cast<std::uint64_t>(weights.samples.id_of(row));
        const bool one_more = Stream(derive(copies_key, id)).uniform() < weight - whole;
        rows.insert(rows.end(), static_cast<std::size_t>(whole) + (one_more ? 1 : 0), row);
    }
    return rows;
}

std::vector<std::int32_t> rows_by_class(const Samples& samples) {
    std::vector<std::int32_t> rows;
    rows.reserve(samples.size() - samples.n_removed());
    for (std::int32_t row = 0; row < static_cast<std::int32_t>(samples.size()); ++row)
        if (samples.class_of(row) != Samples::kRemoved) rows.push_back(row);
    sort_by_class(samples, rows);
    return rows;
}

void sort_by_class(const Samples& samples, std::vector<std::int32_t>& rows) {
    std::stable_sort(rows.begin(), rows.end(), [&](std::int32_t a, std::int32_t b) {
        return samples.class_of(a) < samples.class_of(b);
    });
}

std::vector<std::int32_t> merge_by_class(const Samples& samples,
                                         const std::vector<std::int32_t>& first,
                                         const std::vector<std::int32_t>& second) {
    if (first.empty()) return second;
    if (second.empty()) return first;
    std::vector<std::int32_t> merged(first.size() + second.size());
    std::merge(
        first.begin(), first.end(), second.begin(), second.end(), merged.begin(),
        [&](std::int32_t a, std::int32_t b) { return samples.class_of(a) < samples.class_of(b); });
    return merged;
}

std::vector<std::int32_t> draw_rows(const std::vector<std::int32_t>& sorted,
                                    const RowSampling& sampling, Stream stream) {
    if (sampling.replace) return draw_with_replacement(sorted, sampling.n_rows, stream);
    if (sampling.n_rows >= sorted.size()) return sorted;
    return draw_without_replacement(sorted, sampling.n_rows, stream);
}

}  // namespace evergrow
