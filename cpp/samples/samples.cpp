#include "samples/samples.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace evergrow {

Samples::Samples(std::size_t n_features, Precision precision)
    : n_features_(n_features),
      width_(padded_width(n_features)),
      precision_(precision),
      floats_(width_),
      halves_(width_) {}

template <class T>
Samples::Samples(std::size_t n_features, const std::shared_ptr<const T>& rows,
                 const std::int32_t* classes, const std::int64_t* ids, std::size_t n)
    : Samples(n_features, sizeof(T) == sizeof(float) ? Precision::kFloat32 : Precision::kFloat16) {
    rows_of(T{}).borrow(rows, n);
    lender_ = rows;
    classes_.extend(n);
    ids_.extend(n);
    for (std::size_t i = n; i-- > 0;) {
        *classes_.appended(i) = classes[i];
        *ids_.appended(i) = ids[i];
        if (classes[i] == kRemoved) free_.push_back(static_cast<std::int32_t>(i));
    }
    find_classes();
}

template Samples::Samples(std::size_t, const std::shared_ptr<const float>&, const std::int32_t*,
                          const std::int64_t*, std::size_t);
template Samples::Samples(std::size_t, const std::shared_ptr<const std::uint16_t>&,
                          const std::int32_t*, const std::int64_t*, std::size_t);

void Samples::use(std::shared_ptr<SpillFile> file) {
    file_ = std::move(file);
    floats_.use(file_);
    halves_.use(file_);
}

std::size_t Samples::n_bytes() const {
    return floats_.n_bytes() + halves_.n_bytes() + classes_.n_bytes() + ids_.n_bytes() +
           weights_.n_bytes();
}

// Numbers for more rows, those of removed rows first. Their classes and ids can be written.
std::vector<std::int32_t> Samples::next_numbers(std::size_t n) {
    std::vector<std::int32_t> rows;
    rows.reserve(n);
    while (rows.size() < n && !free_.empty()) {
        rows.push_back(free_.back());
        free_.pop_back();
        classes_.edit(place(rows.back()));
        ids_.edit(place(rows.back()));
        if (has_weights()) *weights_.edit(place(rows.back())) = 1.0F;
    }
    const std::size_t n_new = n - rows.size();
    constexpr std::size_t kMaxRows = std::numeric_limits<std::int32_t>::max();
    if (n_new > kMaxRows - size())
        throw std::invalid_argument("a forest holds at most 2^31 - 1 samples");
    const std::size_t first = classes_.extend(n_new);
    ids_.extend(n_new);
    if (has_weights()) extend_weights();
    for (std::size_t i = first; i < first + n_new; ++i) {
        *classes_.appended(i) = kRemoved;
        *ids_.appended(i) = 0;
        rows.push_back(static_cast<std::int32_t>(i));
    }
    return rows;
}

std::vector<std::int32_t> Samples::add(std::size_t n) {
    if (file_ && !file_->is_own()) use(std::make_shared<SpillFile>(file_->folder()));
    const std::size_t n_before = size();
    std::vector<std::int32_t> rows = next_numbers(n);
    if (precision_ == Precision::kFloat32)
        floats_.extend(size() - n_before);
    else
        halves_.extend(size() - n_before);
    // Numbers that are used again may lie on shared pages.
    for (std::size_t i = 0; i < n && place(rows[i]) < n_before; ++i) {
        if (precision_ == Precision::kFloat32)
            floats_.edit(place(rows[i]));
        else
            halves_.edit(place(rows[i]));
    }
    return rows;
}

template <class T>
void Samples::write(const std::int32_t* numbers, const T* rows, const std::int32_t* classes,
                    const std::int64_t* ids, std::size_t n, const Standardizer& standardizer,
                    std::size_t n_threads) {
    for (std::size_t i = 0; i < n; ++i) {
        *classes_.appended(place(numbers[i])) = classes[i];
        *ids_.appended(place(numbers[i])) = ids[i];
    }
    with_type([&](auto type) {
        std::vector<decltype(type)*> out(n);
        for (std::size_t i = 0; i < n; ++i) out[i] = rows_of(type).appended(place(numbers[i]));
        standardize_rows(standardizer, rows, n, out.data(), n_threads);
    });
    add_to_classes(numbers, n);
}

template void Samples::write(const std::int32_t*, const float*, const std::int32_t*,
                             const std::int64_t*, std::size_t, const Standardizer&, std::size_t);
template void Samples::write(const std::int32_t*, const double*, const std::int32_t*,
                             const std::int64_t*, std::size_t, const Standardizer&, std::size_t);

void Samples::remove(const std::int32_t* numbers, std::size_t n) {
    take_from_classes(numbers, n);
    for (std::size_t i = 0; i < n; ++i) *classes_.edit(place(numbers[i])) = kRemoved;
    free_.insert(free_.end(), numbers, numbers + n);
    // The lowest numbers are used again first, so that new rows lie on few pages.
    std::sort(free_.begin(), free_.end(), [](std::int32_t a, std::int32_t b) { return a > b; });
}

Samples Samples::compacted(std::vector<std::int32_t>& number,
                           std::shared_ptr<SpillFile> file) const {
    Samples copy(n_features_, precision_);
    number.assign(size(), kRemoved);
    std::vector<std::int32_t> left;
    left.reserve(size() - n_removed());
    for (std::size_t i = 0; i < size(); ++i) {
        if (classes_[i] == kRemoved) continue;
        number[i] = static_cast<std::int32_t>(left.size());
        left.push_back(static_cast<std::int32_t>(i));
    }
    if (precision_ == Precision::kFloat32)
        copy.floats_ = floats_.gathered(left, file);
    else
        copy.halves_ = halves_.gathered(left, file);
    copy.use(std::move(file));
    copy.classes_ = classes_.gathered(left);
    copy.ids_ = ids_.gathered(left);
    if (has_weights()) copy.weights_ = weights_.gathered(left);
    copy.find_classes();
    return copy;
}

void Samples::move_to(std::shared_ptr<SpillFile> file) {
    std::vector<std::int32_t> all(size());
    std::iota(all.begin(), all.end(), 0);
    if (precision_ == Precision::kFloat32)
        floats_ = floats_.gathered(all, file);
    else
        halves_ = halves_.gathered(all, file);
    use(std::move(file));
    lender_ = nullptr;
}

void Samples::rename_classes(const std::vector<std::int32_t>& map) {
    for (std::size_t i = 0; i < size(); ++i) {
        const std::int32_t old = classes_[i];
        if (old == kRemoved) continue;
        if (place(old) >= map.size())
            throw std::invalid_argument("the map of classes has no entry for class " +
                                        std::to_string(old));
        if (map[place(old)] != old) *classes_.edit(i) = map[place(old)];
    }
    find_classes();
}

void Samples::set_classes(const std::int32_t* numbers, const std::int32_t* classes, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
        if (class_of(numbers[i]) == kRemoved || classes[i] < 0)
            throw std::invalid_argument("only stored rows can get another class");
    take_from_classes(numbers, n);
    for (std::size_t i = 0; i < n; ++i) *classes_.edit(place(numbers[i])) = classes[i];
    add_to_classes(numbers, n);
}

void Samples::set_weights(const std::int32_t* numbers, const float* weights, std::size_t n) {
    extend_weights();
    for (std::size_t i = 0; i < n; ++i) *weights_.edit(place(numbers[i])) = weights[i];
}

// Gives weight 1 to rows that have none yet.
void Samples::extend_weights() {
    const std::size_t first = weights_.extend(size() - weights_.size());
    for (std::size_t i = first; i < size(); ++i) *weights_.appended(i) = 1.0F;
}

namespace {

// One lock for the sums of all samples, because they are rarely computed.
std::mutex sums_mutex;

}  // namespace

const Samples::ClassRows* Samples::rows_of_class(std::size_t class_id) const {
    return class_id < by_class_.size() ? by_class_[class_id].get() : nullptr;
}

std::vector<std::int64_t> Samples::class_sizes(std::size_t n_classes) const {
    std::vector<std::int64_t> sizes(n_classes, 0);
    for (std::size_t c = 0; c < n_classes; ++c)
        if (const ClassRows* own = rows_of_class(c))
            sizes[c] = static_cast<std::int64_t>(own->rows.size());
    return sizes;
}

std::int32_t Samples::row_at(std::int32_t class_id, std::int64_t i) const {
    const ClassRows* own = rows_of_class(place(class_id));
    if (own == nullptr || i < 0 || static_cast<std::size_t>(i) >= own->rows.size())
        throw std::invalid_argument("class " + std::to_string(class_id) + " has no row at place " +
                                    std::to_string(i));
    return own->rows[static_cast<std::size_t>(i)];
}

std::vector<double> Samples::class_sum(std::int32_t class_id) const {
    if (rows_of_class(place(class_id)) == nullptr) return std::vector<double>(n_features_, 0.0);
    const std::lock_guard<std::mutex> lock(sums_mutex);
    ClassRows& own = *by_class_[place(class_id)];
    if (own.sum.empty()) {
        own.sum.assign(n_features_, 0.0);
        for (std::size_t i = 0; i < own.rows.size(); ++i) add_row(own.rows[i], own.sum);
    }
    return own.sum;
}

void Samples::add_row(std::int32_t row, std::vector<double>& sum) const {
    AlignedVector<float> space(width_);
    const float* values = read(row, space.data());
    for (std::size_t f = 0; f < n_features_; ++f) sum[f] += static_cast<double>(values[f]);
}

// The rows of a class for writing, not shared with other samples.
Samples::ClassRows& Samples::edit_class(std::int32_t class_id) {
    if (place(class_id) >= by_class_.size()) by_class_.resize(place(class_id) + 1);
    std::shared_ptr<ClassRows>& own = by_class_[place(class_id)];
    if (!own) {
        own = std::make_shared<ClassRows>();
    } else if (!has_one_owner(own)) {
        const std::lock_guard<std::mutex> lock(sums_mutex);
        own = std::make_shared<ClassRows>(*own);
    }
    return *own;
}

void Samples::add_to_classes(const std::int32_t* numbers, std::size_t n) {
    std::vector<std::int32_t> unsorted;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int32_t row = numbers[i], class_id = class_of(row);
        if (class_id < 0) continue;
        ClassRows& own = edit_class(class_id);
        const std::size_t size = own.rows.size();
        if (size > 0 && id_of(own.rows[size - 1]) > id_of(row)) unsorted.push_back(class_id);
        own.rows.push_back(row);
        if (!own.sum.empty()) add_row(row, own.sum);
    }
    std::sort(unsorted.begin(), unsorted.end());
    unsorted.erase(std::unique(unsorted.begin(), unsorted.end()), unsorted.end());
    for (const std::int32_t class_id : unsorted) {
        ClassRows& own = edit_class(class_id);
        std::vector<std::int32_t> rows(own.rows.size());
        own.rows.read(0, rows.size(), rows.data());
        std::sort(rows.begin(), rows.end(),
                  [&](std::int32_t a, std::int32_t b) { return id_of(a) < id_of(b); });
        own.rows.write(0, rows.data(), rows.size());
        own.sum.clear();
    }
}

// Before the rows are removed or get other classes.
void Samples::take_from_classes(const std::int32_t* numbers, std::size_t n) {
    std::vector<std::int32_t> gone(numbers, numbers + n), classes;
    for (const std::int32_t row : gone) classes.push_back(class_of(row));
    std::sort(gone.begin(), gone.end());
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    for (const std::int32_t class_id : classes) {
        if (class_id < 0) continue;
        const auto left = std::make_shared<ClassRows>();
        const PagedArray<std::int32_t>& rows = by_class_[place(class_id)]->rows;
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (!std::binary_search(gone.begin(), gone.end(), rows[i]))
                left->rows.push_back(rows[i]);
        by_class_[place(class_id)] = left;
    }
}

void Samples::find_classes() {
    by_class_.clear();
    std::vector<std::int32_t> numbers(size());
    std::iota(numbers.begin(), numbers.end(), 0);
    add_to_classes(numbers.data(), numbers.size());
}

}  // namespace evergrow
