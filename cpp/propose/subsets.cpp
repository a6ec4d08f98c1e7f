#include "subsets.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace evergrow {
namespace {

// Sets of 2 to max_size of n things, or more than `limit` if there are more.
std::size_t count_sets(std::size_t n, std::size_t max_size, std::size_t limit) {
    std::size_t total = 0;
    std::size_t of_size = n;
    for (std::size_t size = 2; size <= max_size; ++size) {
        // At most `limit` before it is multiplied: this does not overflow.
        of_size = of_size * (n - size + 1) / size;
        total += of_size;
        if (total > limit) return total;
    }
    return total;
}

}  // namespace

void Subsets::draw(std::size_t n, std::size_t max_size, std::size_t max_count, std::uint64_t key) {
    members_.clear();
    begins_.assign(1, 0);
    max_size = std::min(max_size, n);
    if (count_sets(n, max_size, max_count) <= max_count) {
        for (std::size_t size = 2; size <= max_size; ++size) enumerate(n, size);
        return;
    }
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), 0);
    for (std::size_t set = 0; set < max_count; ++set) draw_one(max_size, Stream(derive(key, set)));
}

void Subsets::enumerate(std::size_t n, std::size_t size) {
    std::vector<std::int32_t> set(size);
    std::iota(set.begin(), set.end(), 0);
    for (;;) {
        members_.insert(members_.end(), set.begin(), set.end());
        begins_.push_back(members_.size());
        // The last member that can still be one larger; those behind it follow it closely.
        std::size_t at = size;
        while (at > 0 && static_cast<std::size_t>(set[at - 1]) == n - size + at - 1) --at;
        if (at == 0) return;
        ++set[at - 1];
        for (; at < size; ++at) set[at] = set[at - 1] + 1;
    }
}

void Subsets::draw_one(std::size_t max_size, Stream stream) {
    const std::size_t n = order_.size();
    const std::size_t size = 2 + stream.below(static_cast<std::uint32_t>(max_size - 1));
    swaps_.clear();
    // The set of all needs no drawing.
    for (std::size_t j = 0; j < size && size < n; ++j) {
        swaps_.push_back(j + stream.below(static_cast<std::uint32_t>(n - j)));
        std::swap(order_[j], order_[swaps_[j]]);
    }
    const auto first = static_cast<std::ptrdiff_t>(members_.size());
    members_.insert(members_.end(), order_.begin(),
                    order_.begin() + static_cast<std::ptrdiff_t>(size));
    std::sort(members_.begin() + first, members_.end());
    begins_.push_back(members_.size());
    // Undone, for the next set: cheaper than writing all of them anew.
    for (std::size_t j = swaps_.size(); j-- > 0;) std::swap(order_[j], order_[swaps_[j]]);
}

}  // namespace evergrow
