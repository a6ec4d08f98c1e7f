// An array whose copies share memory until one of them changes (copy on write).
//
// Items lie in pages, and a copy shares all pages, in groups. The first edit of a shared page
// copies that page and the owners of its group. An update of a forest therefore costs time and
// memory for what it changes, not for what is stored, and readers of the old forest are not
// affected.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays/aligned.hpp"
#include "arrays/spill_file.hpp"

namespace evergrow {

// Whether `shared` is the only owner. The fence makes what other owners wrote before visible here.
template <class T>
bool has_one_owner(const std::shared_ptr<T>& shared) {
    if (shared.use_count() != 1) return false;
    std::atomic_thread_fence(std::memory_order_acquire);
    return true;
}

// An item is `width` consecutive numbers; the items of a page are consecutive.
template <class T>
class PagedArray {
    static_assert(std::is_trivially_copyable_v<T>, "pages are copied as bytes");

  public:
    explicit PagedArray(std::size_t width = 1, std::size_t page_bytes = kPooledBytes)
        : width_(width) {
        while (page_items() * 2 * item_bytes() <= page_bytes) ++shift_;
    }

    std::size_t size() const { return size_; }
    std::size_t width() const { return width_; }
    // Bytes of all pages, shared ones included.
    std::size_t n_bytes() const { return capacity_ * item_bytes(); }

    const T* at(std::size_t i) const {
        return pages_[i >> shift_] + (i & (page_items() - 1)) * width_;
    }
    const T& operator[](std::size_t i) const { return *at(i); }

    // The item for writing, on a page that is not shared.
    T* edit(std::size_t i) {
        unshare(i >> shift_);
        return const_cast<T*>(at(i));
    }

    // Appends an item with undefined content.
    T* append() {
        const std::size_t page = size_ >> shift_;
        if (size_ < capacity_)
            unshare(page);
        else if (page < pages_.size())
            copy_page(page);
        else
            add_page();
        return const_cast<T*>(at(size_++));
    }
    void push_back(const T& value) { *append() = value; }

    // Copies items out and in, page by page.
    void read(std::size_t first, std::size_t n, T* values) const {
        for_each_run(first, n, [&](std::size_t i, std::size_t run) {
            std::copy_n(at(i), run * width_, values + (i - first) * width_);
        });
    }
    void write(std::size_t first, const T* values, std::size_t n) {
        for_each_run(first, n, [&](std::size_t i, std::size_t run) {
            std::copy_n(values + (i - first) * width_, run * width_, edit(i));
        });
    }

    // Removes all items but keeps the pages.
    void clear() { size_ = 0; }

    // For an empty array: n items in one block of memory of their exact size, with undefined
    // content if `values` is null. Returns the first one, null if there is none.
    T* assign(const T* values, std::size_t n) {
        if (n == 0) return nullptr;
        add_extent(n);
        size_ = n;
        if (values != nullptr) std::copy_n(values, n * width_, appended(0));
        return appended(0);
    }
    // A copy in one block of memory of its exact size.
    PagedArray packed() const {
        PagedArray copy(width_, item_bytes() << shift_);
        T* items = copy.assign(nullptr, size_);
        read(0, size_, items);
        return copy;
    }
    // The same for the items `numbers`; on pages of a file if it is not null.
    PagedArray gathered(const std::vector<std::int32_t>& numbers,
                        std::shared_ptr<SpillFile> file = nullptr) const {
        PagedArray copy(width_);
        copy.use(std::move(file));
        copy.extend(numbers.size());
        for (std::size_t i = 0; i < numbers.size(); ++i)
            std::copy_n(at(static_cast<std::size_t>(numbers[i])), width_, copy.appended(i));
        return copy;
    }
    // Appends `n` items with undefined content and returns the index of the first. They are written
    // through `appended` until the next copy of this array is made.
    std::size_t extend(std::size_t n) {
        const std::size_t first = size_;
        if (n == 0) return first;
        const std::size_t page = size_ >> shift_;
        if (size_ == capacity_ && page < pages_.size()) copy_page(page);
        if (size_ < capacity_) unshare(page);
        size_ += n;
        while (capacity_ < size_) {
            const std::size_t missing = size_ - capacity_;
            if (file_ || missing < page_items())
                add_page();
            else
                add_extent(missing);
        }
        return first;
    }
    T* appended(std::size_t i) { return const_cast<T*>(at(i)); }

    // From now on new pages lie in this file, or in memory if it is null.
    void use(std::shared_ptr<SpillFile> file) { file_ = std::move(file); }

    // For an empty array: borrows n items from `first` on. Borrowed memory is never written: it has
    // other owners, among them the caller, who must remain one, so an edit copies its page first.
    void borrow(const std::shared_ptr<const T>& first, std::size_t n) {
        T* memory = const_cast<T*>(first.get());
        for (std::size_t i = 0; i < n; i += page_items())
            list_page({std::const_pointer_cast<T>(first), memory + i * width_});
        size_ = capacity_ = n;
    }

  private:
    static constexpr std::size_t kGroupPages = 32;
    using Group = std::array<std::shared_ptr<T>, kGroupPages>;

    std::size_t page_items() const { return std::size_t{1} << shift_; }
    std::size_t item_bytes() const { return width_ * sizeof(T); }

    // The owner of a page for writing, in a group that is not shared.
    std::shared_ptr<T>& own_entry(std::size_t page) {
        std::shared_ptr<Group>& group = owners_[page / kGroupPages];
        if (!has_one_owner(group)) group = std::make_shared<Group>(*group);
        return (*group)[page % kGroupPages];
    }
    void set_page(std::size_t page, std::shared_ptr<T> memory) {
        pages_[page] = memory.get();
        own_entry(page) = std::move(memory);
    }
    void list_page(std::shared_ptr<T> memory) {
        if (pages_.size() % kGroupPages == 0) owners_.push_back(std::make_shared<Group>());
        pages_.push_back(nullptr);
        set_page(pages_.size() - 1, std::move(memory));
    }

    // Calls visit(first, n) for the part on each page of the items [first, first + n).
    template <class Visit>
    void for_each_run(std::size_t first, std::size_t n, Visit visit) const {
        for (std::size_t i = first; i < first + n;) {
            const std::size_t run =
                std::min(page_items() - (i & (page_items() - 1)), first + n - i);
            visit(i, run);
            i += run;
        }
    }
    std::shared_ptr<T> allocate(std::size_t n_items) const {
        const std::size_t n_bytes = n_items * item_bytes();
        auto* memory = static_cast<T*>(allocate_aligned(n_bytes));
        return std::shared_ptr<T>(memory, [n_bytes](T* p) { free_aligned(p, n_bytes); });
    }
    std::shared_ptr<T> new_page() const {
        const std::size_t n_bytes = page_items() * item_bytes();
        return file_ ? std::static_pointer_cast<T>(file_->page(n_bytes)) : allocate(page_items());
    }
    void add_page() {
        list_page(new_page());
        capacity_ = pages_.size() << shift_;
    }
    // One block of exactly this size; all pages before it must be full.
    void add_extent(std::size_t n_items) {
        const std::shared_ptr<T> extent = allocate(n_items);
        for (std::size_t i = 0; i < n_items; i += page_items())
            list_page({extent, extent.get() + i * width_});
        capacity_ += n_items;
    }
    void unshare(std::size_t page) {
        // A child process shares the pages of a file with its parent, so they are not edited.
        if (file_ || !has_one_owner(own_entry(page))) copy_page(page);
    }
    void copy_page(std::size_t page) {
        const std::shared_ptr<T> copy = new_page();
        // The last page may be shorter than the others.
        const std::size_t n = std::min(page_items(), capacity_ - (page << shift_));
        std::copy_n(pages_[page], n * width_, copy.get());
        set_page(page, copy);
        if (page + 1 == pages_.size()) capacity_ = pages_.size() << shift_;
    }

    std::size_t width_;
    std::size_t shift_ = 0;  // a page has 2^shift_ items
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;  // items that the pages have space for
    std::vector<T*> pages_;
    std::vector<std::shared_ptr<Group>> owners_;  // of the pages
    std::shared_ptr<SpillFile> file_;
};

}  // namespace evergrow
