#include "samples/samples.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

namespace evergrow {

Samples::Samples(std::size_t n_features, Precision precision, std::shared_ptr<PageSource> source)
    : n_features_(n_features),
      width_(padded_width(n_features)),
      precision_(precision),
      source_(std::move(source)),
      floats_(width_),
      halves_(width_),
      scaled_(width_) {
    floats_.use(source_);
    halves_.use(source_);
}

template <class T>
Samples::Samples(std::size_t n_features, const ForeignRows<T>& rows, const std::int32_t* places,
                 const std::int32_t* classes, const std::int64_t* ids, std::size_t n)
    : Samples(n_features, sizeof(T) == sizeof(float) ? Precision::kFloat32 : Precision::kFloat16,
              nullptr) {
    rows_of(T{}).look_at(rows.memory, n, places);
    loans_.push_back({rows.memory, rows.n_rows});
    classes_.extend(n);
    ids_.extend(n);
    for (std::size_t i = n; i-- > 0;) {
        *classes_.fresh(i) = classes[i];
        *ids_.fresh(i) = ids[i];
        if (classes[i] == kGone) free_.push_back(static_cast<std::int32_t>(i));
    }
}

template Samples::Samples(std::size_t, const ForeignRows<float>&, const std::int32_t*,
                          const std::int32_t*, const std::int64_t*, std::size_t);
template Samples::Samples(std::size_t, const ForeignRows<std::uint16_t>&, const std::int32_t*,
                          const std::int32_t*, const std::int64_t*, std::size_t);

std::size_t Samples::n_bytes() const {
    return floats_.n_bytes() + halves_.n_bytes() + classes_.n_bytes() + ids_.n_bytes();
}

std::size_t Samples::n_own_bytes() const {
    return source_ ? 0 : floats_.n_bytes_besides(loans_) + halves_.n_bytes_besides(loans_);
}

std::vector<std::int32_t> Samples::lenders() const {
    std::vector<std::int32_t> lenders(size(), kOwn);
    if (loans_.empty()) return lenders;
    with_type([&](auto type) {
        for (std::size_t i = 0; i < size(); ++i) {
            if (classes_[i] == kGone) continue;
            const std::size_t loan = rows_of(type).loan_of(i, loans_);
            if (loan < loans_.size()) lenders[i] = static_cast<std::int32_t>(loan);
        }
    });
    return lenders;
}

std::vector<std::size_t> Samples::foreign_rooms() const {
    std::vector<std::size_t> rooms;
    for (const Loan& loan : loans_) rooms.push_back(loan.n_items);
    return rooms;
}

// Numbers for more rows, those of removed ones first. Their classes and ids can be written.
std::vector<std::int32_t> Samples::next_numbers(std::size_t n) {
    std::vector<std::int32_t> rows;
    rows.reserve(n);
    while (rows.size() < n && !free_.empty()) {
        rows.push_back(free_.back());
        free_.pop_back();
        classes_.edit(place(rows.back()));
        ids_.edit(place(rows.back()));
    }
    const std::size_t n_new = n - rows.size();
    constexpr std::size_t kMaxRows = std::numeric_limits<std::int32_t>::max();
    if (n_new > kMaxRows - size())
        throw std::invalid_argument("a forest holds at most 2^31 - 1 samples");
    const std::size_t first = classes_.extend(n_new);
    ids_.extend(n_new);
    for (std::size_t i = first; i < first + n_new; ++i) {
        *classes_.fresh(i) = kGone;
        *ids_.fresh(i) = 0;
        rows.push_back(static_cast<std::int32_t>(i));
    }
    return rows;
}

std::vector<std::int32_t> Samples::add(std::size_t n) {
    const std::size_t n_before = size();
    std::vector<std::int32_t> rows = next_numbers(n);
    if (precision_ == Precision::kFloat32)
        floats_.extend(size() - n_before);
    else
        halves_.extend(size() - n_before);
    // Places used again get pages of their own before they are written.
    for (std::size_t i = 0; i < n && place(rows[i]) < n_before; ++i) {
        if (precision_ == Precision::kFloat32)
            floats_.edit(place(rows[i]));
        else
            halves_.edit(place(rows[i]));
    }
    return rows;
}

template <class T>
std::vector<std::int32_t> Samples::add_over(const ForeignRows<T>& rows, const std::int32_t* places,
                                            const std::int32_t* classes, const std::int64_t* ids,
                                            std::size_t n) {
    loans_.push_back({rows.memory, rows.n_rows});
    std::vector<std::int32_t> numbers = next_numbers(n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t at = places == nullptr ? i : static_cast<std::size_t>(places[i]);
        rows_of(T{}).put(place(numbers[i]), {rows.memory, rows.memory.get() + at * width_});
        *classes_.fresh(place(numbers[i])) = classes[i];
        *ids_.fresh(place(numbers[i])) = ids[i];
    }
    return numbers;
}

template std::vector<std::int32_t> Samples::add_over(const ForeignRows<float>&, const std::int32_t*,
                                                     const std::int32_t*, const std::int64_t*,
                                                     std::size_t);
template std::vector<std::int32_t> Samples::add_over(const ForeignRows<std::uint16_t>&,
                                                     const std::int32_t*, const std::int32_t*,
                                                     const std::int64_t*, std::size_t);

template <class T>
void Samples::move_over(const ForeignRows<T>& rows, const std::int32_t* places,
                        const std::int32_t* numbers, std::size_t n) {
    loans_.push_back({rows.memory, rows.n_rows});
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t at = places == nullptr ? i : place(places[i]);
        rows_of(T{}).put(place(numbers[i]), {rows.memory, rows.memory.get() + at * width_});
    }
    release_removed();
}

template void Samples::move_over(const ForeignRows<float>&, const std::int32_t*,
                                 const std::int32_t*, std::size_t);
template void Samples::move_over(const ForeignRows<std::uint16_t>&, const std::int32_t*,
                                 const std::int32_t*, std::size_t);

// Lets go of memory of somebody else that no row that is left lies in.
void Samples::release_removed() {
    if (loans_.empty()) return;
    if (!blank_) {
        const auto zeros = std::make_shared<const AlignedVector<float>>(width_, 0.0F);
        blank_ = std::shared_ptr<const void>(zeros, zeros->data());
        loans_.push_back({blank_, 0});
    }
    std::vector<std::uint8_t> used(loans_.size() + 1, 0);
    with_type([&](auto type) {
        using T = decltype(type);
        const auto blank = std::static_pointer_cast<const T>(blank_);
        for (const std::int32_t row : free_) rows_of(type).put(place(row), blank);
        for (std::size_t i = 0; i < size(); ++i) used[rows_of(type).loan_of(i, loans_)] = 1;
    });
    std::vector<Loan> left;
    for (std::size_t i = 0; i < loans_.size(); ++i)
        if (used[i] != 0 || loans_[i].memory == blank_) left.push_back(loans_[i]);
    loans_ = std::move(left);
}

template <class T>
void Samples::write(const std::int32_t* numbers, const T* rows, const std::int32_t* classes,
                    const std::int64_t* ids, std::size_t n, const Standardizer& standardizer) {
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t row = place(numbers[i]);
        const T* x = rows + i * n_features_;
        if (precision_ == Precision::kFloat32) {
            standardizer.apply(x, width_, floats_.fresh(row));
        } else {
            standardizer.apply(x, width_, scaled_.data());
            kernels().narrow(scaled_.data(), width_, halves_.fresh(row));
        }
        *classes_.fresh(row) = classes[i];
        *ids_.fresh(row) = ids[i];
    }
}

template void Samples::write(const std::int32_t*, const float*, const std::int32_t*,
                             const std::int64_t*, std::size_t, const Standardizer&);
template void Samples::write(const std::int32_t*, const double*, const std::int32_t*,
                             const std::int64_t*, std::size_t, const Standardizer&);

void Samples::remove(const std::int32_t* numbers, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) *classes_.edit(place(numbers[i])) = kGone;
    free_.insert(free_.end(), numbers, numbers + n);
    // Used again from the lowest on, so that they stay on few pages.
    std::sort(free_.begin(), free_.end(), [](std::int32_t a, std::int32_t b) { return a > b; });
    release_removed();
}

void Samples::erase_removed() {
    if (!source_) return;
    for (const std::int32_t row : free_) {
        if (precision_ == Precision::kFloat32)
            std::fill_n(floats_.fresh(place(row)), width_, 0.0F);
        else
            std::fill_n(halves_.fresh(place(row)), width_, std::uint16_t{0});
    }
}

Samples Samples::without_gaps(std::vector<std::int32_t>& number) const {
    Samples copy(n_features_, precision_, nullptr);
    number.assign(size(), kGone);
    std::vector<std::int32_t> left;
    left.reserve(size() - n_removed());
    for (std::size_t i = 0; i < size(); ++i) {
        if (classes_[i] == kGone) continue;
        number[i] = static_cast<std::int32_t>(left.size());
        left.push_back(static_cast<std::int32_t>(i));
    }
    if (!loans_.empty() && precision_ == Precision::kFloat32)
        copy.floats_ = floats_.picked(left, loans_);
    else if (!loans_.empty())
        copy.halves_ = halves_.picked(left, loans_);
    else if (precision_ == Precision::kFloat32)
        copy.floats_ = floats_.gathered(left);
    else
        copy.halves_ = halves_.gathered(left);
    copy.loans_ = loans_;
    copy.blank_ = blank_;
    copy.classes_ = classes_.gathered(left);
    copy.ids_ = ids_.gathered(left);
    copy.release_removed();
    return copy;
}

void Samples::rename_classes(const std::vector<std::int32_t>& map) {
    for (std::size_t i = 0; i < size(); ++i) {
        const std::int32_t old = classes_[i];
        if (old == kGone) continue;
        if (place(old) >= map.size()) throw std::invalid_argument("map must name every class");
        if (map[place(old)] != old) *classes_.edit(i) = map[place(old)];
    }
}

void Samples::set_classes(const std::int32_t* numbers, const std::int32_t* classes, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        if (class_of(numbers[i]) == kGone || classes[i] < 0)
            throw std::invalid_argument("only rows that are left can have another class");
        *classes_.edit(place(numbers[i])) = classes[i];
    }
}

}  // namespace evergrow
