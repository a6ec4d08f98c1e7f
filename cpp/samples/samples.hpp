// The training samples a forest refers to: standardised rows, the class of each and its id.
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

// Rows that lie in memory of somebody else, padded and standardised. It is never written.
template <class T>
struct ForeignRows {
    std::shared_ptr<const T> memory;
    std::size_t n_rows;
};

// Rows are added and removed; a removed row's place is used again. Copies are cheap: they share
// what neither has changed, so the forest before an update keeps its samples as they were.
class Samples {
  public:
    static constexpr std::int32_t kGone = -1;  // class of a removed row

    // Rows in memory, or on pages from `source` if there is one.
    Samples(std::size_t n_features, Precision precision, std::shared_ptr<PageSource> source);
    // Rows of somebody else, whose memory is kept as long as a row that is left lies there; rows
    // added later lie on pages of their own. Row i lies at places[i], or at i where there are no
    // places. Rows of class kGone are removed ones.
    template <class T>
    Samples(std::size_t n_features, const ForeignRows<T>& rows, const std::int32_t* places,
            const std::int32_t* classes, const std::int64_t* ids, std::size_t n);

    // Room for `n` rows, to be filled with `write`; their numbers.
    std::vector<std::int32_t> add(std::size_t n);
    // Rows of somebody else, as above; for samples without a page source.
    template <class T>
    std::vector<std::int32_t> add_over(const ForeignRows<T>& rows, const std::int32_t* places,
                                       const std::int32_t* classes, const std::int64_t* ids,
                                       std::size_t n);
    // Rows `numbers` are from now on the same ones of somebody else. Memory where no row is left
    // goes, once copies made before have gone.
    template <class T>
    void move_over(const ForeignRows<T>& rows, const std::int32_t* places,
                   const std::int32_t* numbers, std::size_t n);
    // Fills the room of rows `numbers`, which came from `add` on this very object.
    template <class T>
    void write(const std::int32_t* numbers, const T* rows, const std::int32_t* classes,
               const std::int64_t* ids, std::size_t n, const Standardizer& standardizer);
    void remove(const std::int32_t* numbers, std::size_t n);
    // Overwrites removed rows that lie on pages from elsewhere: those of before are then no more.
    void erase_removed();
    // Names class c map[c] instead, for every row that is left.
    void rename_classes(const std::vector<std::int32_t>& map);

    // Gives rows that are left other classes.
    void set_classes(const std::int32_t* numbers, const std::int32_t* classes, std::size_t n);

    // The rows that are left, one after the other in memory of their exact size, or where they are
    // if that is memory of somebody else; `number` says what each row is called there.
    Samples without_gaps(std::vector<std::int32_t>& number) const;

    // Places for rows, also those of removed ones.
    std::size_t size() const { return classes_.size(); }
    std::size_t n_removed() const { return free_.size(); }
    std::size_t n_features() const { return n_features_; }
    std::size_t width() const { return width_; }
    Precision precision() const { return precision_; }
    // Whether centroids may refer to rows: pages from elsewhere may vanish.
    bool can_be_referred_to() const { return source_ == nullptr; }
    const std::shared_ptr<PageSource>& source() const { return source_; }
    std::size_t n_bytes() const;
    // Whose memory each row lies in, by its place in `foreign_rooms`; kOwn for rows that lie in
    // nobody else's and for removed ones.
    static constexpr std::int32_t kOwn = -1;
    std::vector<std::int32_t> lenders() const;
    // How many rows there is room for in the memory of each of them.
    std::vector<std::size_t> foreign_rooms() const;
    // Bytes of rows that lie neither on pages from elsewhere nor in memory of somebody else.
    std::size_t n_own_bytes() const;

    std::int32_t class_of(std::int32_t row) const { return classes_[place(row)]; }
    std::int64_t id_of(std::int32_t row) const { return ids_[place(row)]; }
    const float* full(std::int32_t row) const { return floats_.at(place(row)); }
    const std::uint16_t* half(std::int32_t row) const { return halves_.at(place(row)); }

    // The row in single precision: where it lies, or unpacked into `space`.
    const float* read(std::int32_t row, float* space) const {
        if (precision_ == Precision::kFloat32) return full(row);
        kernels().widen(half(row), width_, space);
        return space;
    }

    // Which of the copies that share a file this is.
    std::uint64_t version = 0;

  private:
    static std::size_t place(std::int32_t row) { return static_cast<std::size_t>(row); }

    PagedArray<float>& rows_of(float) { return floats_; }
    PagedArray<std::uint16_t>& rows_of(std::uint16_t) { return halves_; }
    const PagedArray<float>& rows_of(float) const { return floats_; }
    const PagedArray<std::uint16_t>& rows_of(std::uint16_t) const { return halves_; }
    // Calls `visit` with a number of the type that rows have.
    template <class Visit>
    void with_type(Visit visit) const {
        if (precision_ == Precision::kFloat32)
            visit(float{});
        else
            visit(std::uint16_t{});
    }
    std::vector<std::int32_t> next_numbers(std::size_t n);
    void release_removed();

    std::size_t n_features_;
    std::size_t width_;
    Precision precision_;
    std::shared_ptr<PageSource> source_;
    // Whose memory some rows lie in. Held here besides by every page, so that none is ever found
    // to have one holder only.
    std::vector<Loan> loans_;
    // A row of zeros. Where memory is somebody else's removed rows lie here, so as to hold none.
    std::shared_ptr<const void> blank_;
    PagedArray<float> floats_;
    PagedArray<std::uint16_t> halves_;
    PagedArray<std::int32_t> classes_;
    PagedArray<std::int64_t> ids_;
    std::vector<std::int32_t> free_;
    AlignedVector<float> scaled_;
};

}  // namespace evergrow
