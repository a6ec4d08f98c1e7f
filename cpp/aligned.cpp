#include "aligned.hpp"

#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace evergrow {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;

std::align_val_t alignment_of(std::size_t n_bytes) {
    return std::align_val_t(n_bytes >= 2 * kLargePage ? kLargePage : kAlignment);
}

}  // namespace

void* allocate_aligned(std::size_t n_bytes) {
    void* memory = ::operator new(n_bytes, alignment_of(n_bytes));
#if defined(__linux__)
    // Whole pages only: a last, partly used large page would count as memory in use.
    if (n_bytes >= 2 * kLargePage)
        madvise(memory, n_bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
    return memory;
}

void free_aligned(void* memory, std::size_t n_bytes) {
    ::operator delete(memory, alignment_of(n_bytes));
}

}  // namespace evergrow
