// Vectors whose data start on a cache line, so that kernels may use aligned loads.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "distance.hpp"

namespace evergrow {

template <class T>
struct AlignedAllocator {
    using value_type = T;

    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}

    T* allocate(std::size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(kAlignment)));
    }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t(kAlignment)); }

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
