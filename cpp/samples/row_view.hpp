// Rows of samples as those who grow a tree read them: where they lie, or from a copy near by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arrays/aligned.hpp"
#include "samples/samples.hpp"

namespace evergrow {

// Copies of some rows, one after the other in memory of one thread. Rows of a file larger than
// memory are read again and again on the way down a tree; those of a subtree that fits here, once.
class LoadedRows {
  public:
    // Room for rows of so many bytes altogether. Memory is taken at the first load.
    LoadedRows(const Samples& samples, std::size_t n_bytes)
        : samples_(samples), most_(n_bytes / row_bytes()) {}

    bool fit(std::size_t n_rows) const { return n_rows <= most_; }
    // Copies rows that fit; the same rows in a row take one place. From now on no others are read.
    void load(const std::int32_t* rows, std::size_t n);
    void unload() { are_loaded_ = false; }
    bool are_loaded() const { return are_loaded_; }

    // A loaded row in single precision: where it lies, or unpacked into `space`.
    const float* read(std::int32_t row, float* space) const {
        const std::size_t at = place_[static_cast<std::size_t>(row)] * samples_.width();
        if (samples_.precision() == Precision::kFloat32)
            return static_cast<const float*>(memory_.get()) + at;
        kernels().widen(static_cast<const std::uint16_t*>(memory_.get()) + at, samples_.width(),
                        space);
        return space;
    }

  private:
    std::size_t row_bytes() const {
        const bool full = samples_.precision() == Precision::kFloat32;
        return samples_.width() * (full ? sizeof(float) : sizeof(std::uint16_t));
    }

    const Samples& samples_;
    std::size_t most_;
    bool are_loaded_ = false;
    std::shared_ptr<void> memory_;
    std::vector<std::uint32_t> place_;  // by row, of those that are loaded
};

// Samples, some of whose rows may be loaded. A small value; what it looks at must outlive it.
class RowView {
  public:
    // Not explicit: samples of which nothing is loaded are a view of themselves.
    RowView(const Samples& samples) : samples_(&samples) {}
    RowView(const Samples& samples, const LoadedRows* loaded)
        : samples_(&samples), loaded_(loaded) {}

    std::size_t n_features() const { return samples_->n_features(); }
    std::size_t width() const { return samples_->width(); }
    Precision precision() const { return samples_->precision(); }
    bool can_be_referred_to() const { return samples_->can_be_referred_to(); }

    // The row in single precision: where it lies, or unpacked into `space`.
    const float* read(std::int32_t row, float* space) const {
        return loaded() != nullptr ? loaded()->read(row, space) : samples_->read(row, space);
    }

    // Where rows are read now: the copies, null while there are none, or the samples.
    const LoadedRows* loaded() const {
        return loaded_ != nullptr && loaded_->are_loaded() ? loaded_ : nullptr;
    }
    const Samples& samples() const { return *samples_; }

  private:
    const Samples* samples_;
    const LoadedRows* loaded_ = nullptr;
};

// Rows as vectors for a kernel, a block at a time.
class RowReader {
  public:
    // Rows handed to a kernel at once; single precision adds up this many without visible error.
    static constexpr std::size_t kBlock = 512;

    explicit RowReader(const RowView& rows) : rows_(rows), vectors_(kBlock) {
        if (rows.precision() == Precision::kFloat16) space_.resize(kBlock * rows.width());
    }
    // At most kBlock rows; valid until the next call.
    const float* const* read(const std::int32_t* rows, std::size_t n) {
        // Asked once for a block, not once for a row.
        if (const LoadedRows* loaded = rows_.loaded())
            read_from(*loaded, rows, n);
        else
            read_from(rows_.samples(), rows, n);
        return vectors_.data();
    }

  private:
    template <class Source>
    void read_from(const Source& source, const std::int32_t* rows, std::size_t n) {
        const std::size_t width = rows_.width();
        for (std::size_t i = 0; i < n; ++i)
            vectors_[i] = source.read(rows[i], space_.data() + i * width);
    }

    const RowView rows_;
    std::vector<const float*> vectors_;
    AlignedVector<float> space_;
};

}  // namespace evergrow
