// Memory that starts on a cache line, so that kernels can use aligned loads.
#pragma once

#include <cstddef>
#include <vector>

namespace evergrow {

// Rows and centroids start on a cache line and are padded with zeros to a whole number of cache
// lines, which is a whole number of registers for every instruction set.
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kCacheLineFloats = kAlignment / sizeof(float);

constexpr std::size_t padded_width(std::size_t n_features) {
    return (n_features + kCacheLineFloats - 1) / kCacheLineFloats * kCacheLineFloats;
}

// Large blocks use huge pages where the system has them: rows and centroids are read in random
// order, and each then needs one address translation instead of several. Freed blocks of exactly
// these sizes, the pages of arrays, are reused. Small ones are for arrays that updates edit in many
// places, each of which copies a page.
constexpr std::size_t kPooledBytes = std::size_t{16} << 10;
constexpr std::size_t kSmallPooledBytes = std::size_t{4} << 10;
void* allocate_aligned(std::size_t n_bytes);
void free_aligned(void* memory, std::size_t n_bytes);

template <class T>
struct AlignedAllocator {
    using value_type = T;

    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}

    T* allocate(std::size_t n) { return static_cast<T*>(allocate_aligned(n * sizeof(T))); }
    void deallocate(T* p, std::size_t n) { free_aligned(p, n * sizeof(T)); }

    template <class U>
    bool operator==(const AlignedAllocator<U>&) const {
        return true;
    }
    template <class U>
    bool operator!=(const AlignedAllocator<U>&) const {
        return false;
    }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace evergrow
