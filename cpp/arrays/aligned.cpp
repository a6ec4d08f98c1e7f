#include "arrays/aligned.hpp"

#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace evergrow {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;

std::align_val_t alignment_of(std::size_t n_bytes) {
    return std::align_val_t(n_bytes >= 2 * kLargePage ? kLargePage : kAlignment);
}

// Freed pages. Updates free and allocate many, and the system would clear each of them again.
class PagePool {
  public:
    void* take() {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (free_.empty()) return nullptr;
        void* page = free_.back();
        free_.pop_back();
        return page;
    }
    bool give(void* page) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (free_.size() >= kMaxPages) return false;
        free_.push_back(page);
        return true;
    }

  private:
    static constexpr std::size_t kMaxPages = 4096;

    std::mutex mutex_;
    std::vector<void*> free_;
};

// Null for blocks that are not reused.
PagePool* pool_of(std::size_t n_bytes) {
    // Never destroyed: arrays may live until the process ends.
    static auto* pools = new PagePool[2];
    if (n_bytes == kPooledBytes) return &pools[0];
    return n_bytes == kSmallPooledBytes ? &pools[1] : nullptr;
}

}  // namespace

void* allocate_aligned(std::size_t n_bytes) {
    if (PagePool* pool = pool_of(n_bytes))
        if (void* page = pool->take()) return page;
    void* memory = ::operator new(n_bytes, alignment_of(n_bytes));
#if defined(__linux__)
    // Whole pages only: a partly used huge page would count as memory in use.
    if (n_bytes >= 2 * kLargePage)
        madvise(memory, n_bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
    return memory;
}

void free_aligned(void* memory, std::size_t n_bytes) {
    PagePool* pool = pool_of(n_bytes);
    if (pool != nullptr && pool->give(memory)) return;
    ::operator delete(memory, alignment_of(n_bytes));
}

}  // namespace evergrow
