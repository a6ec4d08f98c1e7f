#include "propose/subsets.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace evergrow {
namespace {

// The number of subsets with 2 to max_size of n elements; stops counting above `limit`.
std::size_t count_sets(std::size_t n, std::size_t max_size, std::size_t limit) {
    std::size_t total = 0;
    std::size_t of_size = n;
    for (std::size_t size = 2; size <= max_size; ++size) {
        // It is at most `limit` before the multiplication, so it does not overflow.
        of_size = of_size * (n - size + 1) / size;
        total += of_size;
        if (total > limit) return total;
    }
    return total;
}

// Sorts different numbers. A few are placed by counting lower ones, because sorting a random
// sequence mispredicts most branches.
void sort_into(const std::int32_t* numbers, std::size_t n, std::int32_t* sorted) {
    constexpr std::size_t kFew = 16;
    if (n > kFew) {
        std::copy_n(numbers, n, sorted);
        std::sort(sorted, sorted + n);
        return;
    }
    for (std::size_t i = 0; i < n; ++i) {
        std::int32_t n_lower = 0;
        for (std::size_t j = 0; j < n; ++j) n_lower += numbers[j] < numbers[i] ? 1 : 0;
        sorted[n_lower] = numbers[i];
    }
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
    // A single subset has the maximum size, as in a forest without regularisation.
    const std::size_t min_size = max_count == 1 ? max_size : 2;
    for (std::size_t set = 0; set < max_count; ++set)
        draw_one(min_size, max_size, Stream(derive(key, set)));
}

void Subsets::enumerate(std::size_t n, std::size_t size) {
    std::vector<std::int32_t> set(size);
    std::iota(set.begin(), set.end(), 0);
    for (;;) {
        members_.insert(members_.end(), set.begin(), set.end());
        begins_.push_back(members_.size());
        // Increments the last member that can be; the ones after it follow consecutively.
        std::size_t at = size;
        while (at > 0 && static_cast<std::size_t>(set[at - 1]) == n - size + at - 1) --at;
        if (at == 0) return;
        ++set[at - 1];
        for (; at < size; ++at) set[at] = set[at - 1] + 1;
    }
}

void Subsets::draw_one(std::size_t min_size, std::size_t max_size, Stream stream) {
    const std::size_t n = order_.size();
    const auto n_sizes = static_cast<std::uint32_t>(max_size - min_size + 1);
    const std::size_t size = min_size + stream.below(n_sizes);
    swaps_.clear();
    // The subset of all elements needs no draws.
    for (std::size_t j = 0; j < size && size < n; ++j) {
        swaps_.push_back(j + stream.below(static_cast<std::uint32_t>(n - j)));
        std::swap(order_[j], order_[swaps_[j]]);
    }
    members_.resize(members_.size() + size);
    sort_into(order_.data(), size, members_.data() + begins_.back());
    begins_.push_back(members_.size());
    // Undoes the swaps, which is faster than filling the array again.
    for (std::size_t j = swaps_.size(); j-- > 0;) std::swap(order_[j], order_[swaps_[j]]);
}

}  // namespace evergrow
