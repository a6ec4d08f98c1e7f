// The training samples of a forest: standardised rows, the class, id and weight of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arrays/aligned.hpp"
#include "arrays/paged_array.hpp"
#include "kernels/kernels.hpp"
#include "samples/standardizer.hpp"

namespace evergrow {

enum class Precision : std::uint8_t { kFloat32, kFloat16 };

// Rows can be added and removed; the numbers of removed rows are used again. Copies are cheap: they
// share the pages that neither has changed, so the forest before an update keeps its samples.
class Samples {
  public:
    static constexpr std::int32_t kRemoved = -1;  // class of a removed row

    Samples(std::size_t n_features, Precision precision);
    // Padded, standardised rows that are borrowed from the caller and never written. Class kRemoved
    // marks a removed row. Rows that are added later lie on own pages.
    template <class T>
    Samples(std::size_t n_features, const std::shared_ptr<const T>& rows,
            const std::int32_t* classes, const std::int64_t* ids, std::size_t n);

    // From now on new rows lie in this file, or in memory if it is null.
    void use(std::shared_ptr<SpillFile> file);
    const std::shared_ptr<SpillFile>& file() const { return file_; }
    // Numbers for `n` new rows, to be filled with `write`.
    std::vector<std::int32_t> add(std::size_t n);
    // Fills rows `numbers`, which came from `add` on this object.
    template <class T>
    void write(const std::int32_t* numbers, const T* rows, const std::int32_t* classes,
               const std::int64_t* ids, std::size_t n, const Standardizer& standardizer,
               std::size_t n_threads);
    void remove(const std::int32_t* numbers, std::size_t n);
    // Replaces class c by map[c] in all rows.
    void rename_classes(const std::vector<std::int32_t>& map);
    // Gives rows other classes; they must not be removed ones.
    void set_classes(const std::int32_t* numbers, const std::int32_t* classes, std::size_t n);
    // Gives rows weights; new rows have weight 1.
    void set_weights(const std::int32_t* numbers, const float* weights, std::size_t n);

    // A copy without removed rows, in memory of its exact size or in a file. `number` receives the
    // new number of every row.
    Samples compacted(std::vector<std::int32_t>& number, std::shared_ptr<SpillFile> file) const;
    // Moves all rows to a file; their numbers stay.
    void move_to(std::shared_ptr<SpillFile> file);

    // Number of rows, removed ones included.
    std::size_t size() const { return classes_.size(); }
    std::size_t n_removed() const { return free_.size(); }
    std::size_t n_features() const { return n_features_; }
    std::size_t width() const { return width_; }
    Precision precision() const { return precision_; }
    std::size_t n_bytes() const;

    // Stored rows of each class, for classes below `n_classes`.
    std::vector<std::int64_t> class_sizes(std::size_t n_classes) const;
    // A stored row of a class by its place in the order of the ids. Unlike numbers, these places
    // are the same in a copy that was saved and loaded.
    std::int32_t row_at(std::int32_t class_id, std::int64_t i) const;
    // The sum of the stored rows of a class, added up in that order.
    std::vector<double> class_sum(std::int32_t class_id) const;

    std::int32_t class_of(std::int32_t row) const { return classes_[place(row)]; }
    std::int64_t id_of(std::int32_t row) const { return ids_[place(row)]; }
    // Whether a row was ever given a weight; otherwise all have weight 1.
    bool has_weights() const { return weights_.size() > 0; }
    float weight_of(std::int32_t row) const { return has_weights() ? weights_[place(row)] : 1.0F; }
    const float* full(std::int32_t row) const { return floats_.at(place(row)); }
    const std::uint16_t* half(std::int32_t row) const { return halves_.at(place(row)); }

    // The row in single precision: in place, or converted into `buffer`.
    const float* read(std::int32_t row, float* buffer) const {
        if (precision_ == Precision::kFloat32) return full(row);
        kernels().widen(half(row), width_, buffer);
        return buffer;
    }

  private:
    // Copies of samples share those of classes that neither has changed.
    struct ClassRows {
        PagedArray<std::int32_t> rows{1, 256};  // in the order of their ids
        std::vector<double> sum;                // empty until it is asked for
    };

    static std::size_t place(std::int32_t row) { return static_cast<std::size_t>(row); }

    PagedArray<float>& rows_of(float) { return floats_; }
    PagedArray<std::uint16_t>& rows_of(std::uint16_t) { return halves_; }
    const PagedArray<float>& rows_of(float) const { return floats_; }
    const PagedArray<std::uint16_t>& rows_of(std::uint16_t) const { return halves_; }
    // Calls `visit` with a value of the type of the rows.
    template <class Visit>
    void with_type(Visit visit) const {
        if (precision_ == Precision::kFloat32)
            visit(float{});
        else
            visit(std::uint16_t{});
    }
    std::vector<std::int32_t> next_numbers(std::size_t n);
    void extend_weights();
    const ClassRows* rows_of_class(std::size_t class_id) const;
    ClassRows& edit_class(std::int32_t class_id);
    void add_to_classes(const std::int32_t* numbers, std::size_t n);
    void take_from_classes(const std::int32_t* numbers, std::size_t n);
    void find_classes();
    void add_row(std::int32_t row, std::vector<double>& sum) const;

    std::size_t n_features_;
    std::size_t width_;
    Precision precision_;
    std::shared_ptr<SpillFile> file_;
    // Borrowed memory. This second reference besides that of the pages makes sure that no borrowed
    // page ever has a single owner, which would allow writing it.
    std::shared_ptr<const void> lender_;
    PagedArray<float> floats_;
    PagedArray<std::uint16_t> halves_;
    PagedArray<std::int32_t> classes_;
    PagedArray<std::int64_t> ids_;
    std::vector<std::shared_ptr<ClassRows>> by_class_;  // null for a class that never had rows
    PagedArray<float> weights_;                         // empty if all are 1
    std::vector<std::int32_t> free_;                    // removed rows, highest number first
};

}  // namespace evergrow
