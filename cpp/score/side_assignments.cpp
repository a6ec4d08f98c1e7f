#include "score/side_assignments.hpp"

#include <algorithm>

namespace evergrow {
namespace {

constexpr std::size_t kWordBits = 64;
constexpr std::size_t kBatch = 1024;

std::size_t padded(std::size_t n_candidates) {
    return (n_candidates + kCandidateLanes - 1) / kCandidateLanes * kCandidateLanes;
}

std::size_t table_size(std::size_t n) {
    std::size_t size = 4;
    while (size < 2 * n) size *= 2;
    return size;
}

// Inserts a key into an open-addressing hash table in which 0 means empty; false if the key was
// there. Keys are random, so their low bits are the hash.
bool insert(std::vector<std::uint64_t>& table, std::uint64_t key) {
    const std::size_t mask = table.size() - 1;
    for (std::size_t i = static_cast<std::size_t>(key) & mask;; i = (i + 1) & mask) {
        if (table[i] == key) return false;
        if (table[i] == 0) {
            table[i] = key;
            return true;
        }
    }
}

}  // namespace

void SideAssignments::start(std::size_t n_centroids, std::size_t max_count, const Stream& stream) {
    n_centroids_ = n_centroids;
    first_ = stream;
    const std::size_t n_free = n_centroids - 1;
    enumerated_ = n_free < kWordBits - 1 && (std::uint64_t{1} << n_free) - 1 <= max_count;
    n_all_ = enumerated_ ? std::size_t{1} << n_free : max_count;
    is_drawn_ = false;
    masks_.clear();
    rewind();
}

void SideAssignments::rewind() {
    n_left_ = n_all_;
    if (enumerated_ || is_drawn_) return;
    stream_ = first_;
    seen_.assign(table_size(n_all_), 0);
}

bool SideAssignments::next_batch() {
    if (n_left_ == 0) return false;
    size_ = enumerated_ ? n_left_ : std::min(n_left_, kBatch);
    n_left_ -= size_;
    if (enumerated_ || is_drawn_) return true;
    draw(size_);
    is_drawn_ = size_ == n_all_;
    return true;
}

void SideAssignments::draw(std::size_t count) {
    const std::size_t n_free = n_centroids_ - 1;
    const std::size_t n_words = (n_free + kWordBits - 1) / kWordBits;
    const std::size_t last_bits = n_free - (n_words - 1) * kWordBits;
    const std::uint64_t last_mask = ~std::uint64_t{0} >> (kWordBits - last_bits);
    words_.assign(n_words * count, 0);
    for (std::size_t i = 0; i < count;) {
        std::uint64_t any = 0;
        std::uint64_t key = 0;
        for (std::size_t w = 0; w < n_words; ++w) {
            const std::uint64_t word =
                stream_.next() & (w + 1 == n_words ? last_mask : ~std::uint64_t{0});
            words_[w * count + i] = word;
            any |= word;
            // Assignments of more than 65 centroids are compared by a 64-bit hash.
            key = n_words == 1 ? word : derive(key, word);
        }
        if (any != 0 && insert(seen_, key)) ++i;
    }
    stride_ = padded(count);
    masks_.assign(n_centroids_ * stride_, 0);
    for (std::size_t j = 0; j < n_free; ++j) {
        const std::uint64_t* words = words_.data() + j / kWordBits * count;
        std::int8_t* masks = masks_.data() + j * stride_;
        for (std::size_t i = 0; i < count; ++i)
            masks[i] = static_cast<std::int8_t>(-static_cast<int>(words[i] >> j % kWordBits & 1U));
    }
}

void SideAssignments::enumerate_masks() {
    stride_ = padded(size_);
    masks_.assign(n_centroids_ * stride_, 0);
    for (std::size_t j = 0; j + 1 < n_centroids_; ++j)
        for (std::size_t i = 0; i < size_; ++i) masks_[j * stride_ + i] = goes_right(i, j) ? -1 : 0;
}

CandidateMasks SideAssignments::masks() {
    if (masks_.empty()) enumerate_masks();
    return CandidateMasks{masks_.data(), stride_, size_};
}

bool SideAssignments::goes_right(std::size_t candidate, std::size_t centroid) const {
    if (centroid + 1 == n_centroids_) return false;
    if (enumerated_) return (candidate >> centroid & 1U) != 0;
    return masks_[centroid * stride_ + candidate] != 0;
}

void SideAssignments::count_right(const std::int32_t* counts, std::int32_t* right) const {
    if (enumerated_) {
        right[0] = 0;
        for (std::size_t j = 0; j + 1 < n_centroids_; ++j) {
            const std::size_t half = std::size_t{1} << j;
            const std::int32_t count = counts[j];
            for (std::size_t i = 0; i < half; ++i) right[half + i] = right[i] + count;
        }
        return;
    }
    std::fill(right, right + size_, 0);
    for (std::size_t j = 0; j + 1 < n_centroids_; ++j) {
        if (counts[j] == 0) continue;
        const std::int8_t* mask = masks_.data() + j * stride_;
        const std::int32_t count = counts[j];
        for (std::size_t i = 0; i < size_; ++i) right[i] += mask[i] & count;
    }
}

}  // namespace evergrow
