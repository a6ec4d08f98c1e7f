#include "sample_rows.hpp"

#include <algorithm>

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

// Selection sampling (Knuth, algorithm S): every subset is equally likely, in one ordered pass.
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

std::vector<std::int32_t> rows_by_class(const Samples& samples) {
    const std::vector<std::int32_t>& classes = samples.classes();
    std::vector<std::int32_t> rows(classes.size());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
    std::stable_sort(rows.begin(), rows.end(), [&](std::int32_t a, std::int32_t b) {
        return classes[static_cast<std::size_t>(a)] < classes[static_cast<std::size_t>(b)];
    });
    return rows;
}

std::vector<std::int32_t> draw_rows(const std::vector<std::int32_t>& sorted,
                                    const RowSampling& sampling, Stream stream) {
    if (sampling.replace) return draw_with_replacement(sorted, sampling.n_rows, stream);
    if (sampling.n_rows >= sorted.size()) return sorted;
    return draw_without_replacement(sorted, sampling.n_rows, stream);
}

}  // namespace evergrow
