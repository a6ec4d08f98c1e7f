// An array whose copies share memory until one of them is changed.
//
// Items lie in pages. A copy takes the pages as they are; whoever changes an item first makes a
// page of its own if others still look at it. An update of a forest therefore costs by what it
// touches, not by what is stored, and the forest before the update stays whole for its readers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays/aligned.hpp"

namespace evergrow {

// Where pages that do not live in ordinary memory come from.
class PageSource {
  public:
    virtual ~PageSource() = default;
    virtual std::shared_ptr<void> next_page(std::size_t n_bytes) = 0;
};

// Memory of somebody else, and how many items there is room for in it.
struct Loan {
    std::shared_ptr<const void> memory;
    std::size_t n_items;
};

// An item is `width` numbers in a row; items of one page are neighbours.
template <class T>
class PagedArray {
    static_assert(std::is_trivially_copyable_v<T>, "pages are copied as memory");

  public:
    explicit PagedArray(std::size_t width = 1) : width_(width) {
        while (page_items() * 2 * item_bytes() <= kPageBytes) ++shift_;
    }

    std::size_t size() const { return size_; }
    std::size_t width() const { return width_; }
    // Bytes of all pages, whoever else holds them.
    std::size_t n_bytes() const { return room_ * item_bytes(); }

    const T* at(std::size_t i) const {
        return pages_[i >> shift_].get() + (i & (page_items() - 1)) * width_;
    }
    const T& operator[](std::size_t i) const { return *at(i); }

    // The item, on a page that no copy of this array looks at.
    T* edit(std::size_t i) {
        own(i >> shift_);
        return const_cast<T*>(at(i));
    }

    // Room for one more item, its content undefined.
    T* append() {
        const std::size_t page = size_ >> shift_;
        if (size_ < room_)
            own(page);
        else if (page < pages_.size())
            replace(page);
        else
            add_page();
        return const_cast<T*>(at(size_++));
    }
    void push_back(const T& value) { *append() = value; }

    // Copies items out and in, page by page.
    void read(std::size_t first, std::size_t n, T* values) const {
        each_run(first, n, [&](std::size_t i, std::size_t run) {
            std::copy_n(at(i), run * width_, values + (i - first) * width_);
        });
    }
    void write(std::size_t first, const T* values, std::size_t n) {
        each_run(first, n, [&](std::size_t i, std::size_t run) {
            std::copy_n(values + (i - first) * width_, run * width_, edit(i));
        });
    }

    // No items; pages of its own are kept for the next ones.
    void clear() { size_ = 0; }

    // The same items in one piece of memory of exactly their size.
    PagedArray packed() const {
        PagedArray copy(width_);
        if (size_ == 0) return copy;
        copy.add_extent(size_);
        copy.size_ = size_;
        read(0, size_, copy.fresh(0));
        return copy;
    }
    // The items `numbers` likewise.
    PagedArray gathered(const std::vector<std::int32_t>& numbers) const {
        PagedArray copy(width_);
        copy.extend(numbers.size());
        for (std::size_t i = 0; i < numbers.size(); ++i)
            std::copy_n(at(static_cast<std::size_t>(numbers[i])), width_, copy.fresh(i));
        return copy;
    }
    // Room for `n` more items, their content undefined; returns the first. Until the next copy of
    // this array is made they are written through `fresh`.
    std::size_t extend(std::size_t n) {
        const std::size_t first = size_;
        if (n == 0) return first;
        const std::size_t page = size_ >> shift_;
        if (size_ == room_ && page < pages_.size()) replace(page);
        if (size_ < room_) own(page);
        size_ += n;
        while (room_ < size_) {
            const std::size_t missing = size_ - room_;
            if (source_ || missing < page_items())
                add_page();
            else
                add_extent(missing);
        }
        return first;
    }
    T* fresh(std::size_t i) { return const_cast<T*>(at(i)); }

    // visit(first, n) for every run of items that are others than in the array that this was once a
    // copy of; those behind its last are one run.
    template <class Visit>
    void each_change_since(const PagedArray& before, Visit visit) const {
        const std::size_t n_both = std::min(size_, before.size_);
        std::size_t first = 0, n = 0;
        each_run(0, n_both, [&](std::size_t begin, std::size_t run) {
            if (pages_[begin >> shift_] == before.pages_[begin >> shift_]) return;
            for (std::size_t i = begin; i < begin + run; ++i) {
                if (std::memcmp(at(i), before.at(i), item_bytes()) == 0) continue;
                if (n > 0 && first + n != i) visit(first, n);
                if (n == 0 || first + n != i) first = i, n = 0;
                ++n;
            }
        });
        if (n > 0) visit(first, n);
        if (n_both < size_) visit(n_both, size_ - n_both);
    }

    // Pages from elsewhere; copies then share what is changed. For an empty array.
    void use(std::shared_ptr<PageSource> source) { source_ = std::move(source); }

    // For an empty array: items that lie in memory of somebody else, item i at `first` + places[i]
    // or, without places, one after the other. They are never written: a page whose owner has
    // other holders is copied first, and the caller must stay one.
    void look_at(const std::shared_ptr<const T>& first, std::size_t n, const std::int32_t* places) {
        // Items of one page are neighbours, which only those without places are.
        if (places != nullptr) shift_ = 0;
        T* memory = const_cast<T*>(first.get());
        for (std::size_t i = 0; i < n; i += page_items()) {
            const std::size_t at = places == nullptr ? i : static_cast<std::size_t>(places[i]);
            pages_.emplace_back(std::const_pointer_cast<T>(first), memory + at * width_);
        }
        size_ = room_ = n;
    }
    // Item i, which may be one past the last, lies in memory of somebody else likewise.
    void put(std::size_t i, const std::shared_ptr<const T>& item) {
        split_pages();
        if (i == size_) {
            pages_.emplace_back();
            room_ = ++size_;
        }
        pages_[i] = std::const_pointer_cast<T>(item);
    }
    // In which of these item i lies; their number if in none.
    std::size_t loan_of(std::size_t i, const std::vector<Loan>& loans) const {
        return find(pages_[i >> shift_], loans);
    }
    // Bytes of pages that belong to none of these.
    std::size_t n_bytes_besides(const std::vector<Loan>& loans) const {
        std::size_t n_pages = 0;
        for (const std::shared_ptr<T>& page : pages_)
            if (find(page, loans) == loans.size()) ++n_pages;
        return std::min(n_pages << shift_, room_) * item_bytes();
    }
    // The items `numbers`, each on a page of its own: those in one of these stay there, others are
    // copied.
    PagedArray picked(const std::vector<std::int32_t>& numbers,
                      const std::vector<Loan>& loans) const {
        PagedArray copy(width_);
        copy.shift_ = 0;
        for (const std::int32_t number : numbers) {
            const auto i = static_cast<std::size_t>(number);
            const std::shared_ptr<T>& page = pages_[i >> shift_];
            if (find(page, loans) < loans.size())
                copy.put(copy.size_, std::shared_ptr<const T>(page, at(i)));
            else
                std::copy_n(at(i), width_, copy.append());
        }
        return copy;
    }

  private:
    static constexpr std::size_t kPageBytes = kPooledBytes;

    std::size_t page_items() const { return std::size_t{1} << shift_; }
    std::size_t item_bytes() const { return width_ * sizeof(T); }

    static std::size_t find(const std::shared_ptr<T>& page, const std::vector<Loan>& loans) {
        const auto is_same = [&](const Loan& loan) {
            return !page.owner_before(loan.memory) && !loan.memory.owner_before(page);
        };
        return static_cast<std::size_t>(std::find_if(loans.begin(), loans.end(), is_same) -
                                        loans.begin());
    }
    // Every item becomes a page of its own, where it lies.
    void split_pages() {
        if (shift_ == 0) return;
        std::vector<std::shared_ptr<T>> split;
        split.reserve(size_);
        for (std::size_t i = 0; i < size_; ++i)
            split.emplace_back(pages_[i >> shift_], const_cast<T*>(at(i)));
        pages_ = std::move(split);
        shift_ = 0;
        room_ = size_;
    }
    template <class Visit>
    void each_run(std::size_t first, std::size_t n, Visit visit) const {
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
    void add_page() {
        const std::size_t n_bytes = page_items() * item_bytes();
        pages_.push_back(source_ ? std::static_pointer_cast<T>(source_->next_page(n_bytes))
                                 : allocate(page_items()));
        room_ = pages_.size() << shift_;
    }
    // One piece of memory of exactly this size; all pages before it must be whole.
    void add_extent(std::size_t n_items) {
        const std::shared_ptr<T> extent = allocate(n_items);
        for (std::size_t i = 0; i < n_items; i += page_items())
            pages_.emplace_back(extent, extent.get() + i * width_);
        room_ += n_items;
    }
    void own(std::size_t page) {
        if (source_) return;
        if (pages_[page].use_count() == 1) {
            // What the last other holder read, it read before it let go.
            std::atomic_thread_fence(std::memory_order_acquire);
            return;
        }
        replace(page);
    }
    void replace(std::size_t page) {
        const std::shared_ptr<T> copy = allocate(page_items());
        // The last page may be shorter than the others.
        const std::size_t n = std::min(page_items(), room_ - (page << shift_));
        std::copy_n(pages_[page].get(), n * width_, copy.get());
        pages_[page] = copy;
        if (page + 1 == pages_.size()) room_ = pages_.size() << shift_;
    }

    std::size_t width_;
    std::size_t shift_ = 0;
    std::size_t size_ = 0;
    std::size_t room_ = 0;  // items there is memory for
    std::vector<std::shared_ptr<T>> pages_;
    std::shared_ptr<PageSource> source_;
};

}  // namespace evergrow
