// Read access to rows while a tree grows: in place, or from a copy in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arrays/aligned.hpp"
#include "samples/samples.hpp"

namespace evergrow {

// Copies of some rows in memory of one thread. Growing a tree reads its rows at every level; where
// rows lie in a file that is larger than memory, those of a subtree that fits here are read once.
class LoadedRows {
  public:
    // At most `n_bytes` of rows. Memory is allocated by the first load.
    LoadedRows(const Samples& samples, std::size_t n_bytes)
        : samples_(samples), max_rows_(n_bytes / row_bytes()) {}

    bool fit(std::size_t n_rows) const { return n_rows <= max_rows_; }
    // Copies rows that fit; consecutive duplicates are copied once. Until `unload` only these rows
    // can be read.
    void load(const std::int32_t* rows, std::size_t n);
    void unload() { are_loaded_ = false; }
    bool are_loaded() const { return are_loaded_; }

    // A loaded row in single precision: in place, or converted into `buffer`.
    const float* read(std::int32_t row, float* buffer) const {
        const std::size_t at = place_[static_cast<std::size_t>(row)] * samples_.width();
        if (samples_.precision() == Precision::kFloat32)
            return static_cast<const float*>(memory_.get()) + at;
        kernels().widen(static_cast<const std::uint16_t*>(memory_.get()) + at, samples_.width(),
                        buffer);
        return buffer;
    }

  private:
    std::size_t row_bytes() const {
        const bool full = samples_.precision() == Precision::kFloat32;
        return samples_.width() * (full ? sizeof(float) : sizeof(std::uint16_t));
    }

    const Samples& samples_;
    std::size_t max_rows_;
    bool are_loaded_ = false;
    std::shared_ptr<void> memory_;
    std::vector<std::uint32_t> place_;  // by row number, of loaded rows
};

// Samples, some of whose rows may be loaded. A view: the samples must outlive it.
class RowView {
  public:
    // Not explicit: samples convert to a view without loaded rows.
    RowView(const Samples& samples) : samples_(&samples) {}
    RowView(const Samples& samples, const LoadedRows* loaded)
        : samples_(&samples), loaded_(loaded) {}

    std::size_t n_features() const { return samples_->n_features(); }
    std::size_t width() const { return samples_->width(); }
    Precision precision() const { return samples_->precision(); }
    bool can_reference_rows() const { return samples_->can_reference_rows(); }

    // The row in single precision: in place, or converted into `buffer`.
    const float* read(std::int32_t row, float* buffer) const {
        return loaded() != nullptr ? loaded()->read(row, buffer) : samples_->read(row, buffer);
    }

    // The loaded rows, null while nothing is loaded.
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
    // Rows per kernel call. Sums of this many rows are accurate enough in single precision.
    static constexpr std::size_t kBlock = 512;

    explicit RowReader(const RowView& rows) : rows_(rows), vectors_(kBlock) {
        if (rows.precision() == Precision::kFloat16) buffer_.resize(kBlock * rows.width());
    }
    // Pointers to at most kBlock rows, valid until the next call.
    const float* const* read(const std::int32_t* rows, std::size_t n) {
        // Tested once per block instead of once per row.
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
            vectors_[i] = source.read(rows[i], buffer_.data() + i * width);
    }

    const RowView rows_;
    std::vector<const float*> vectors_;
    AlignedVector<float> buffer_;
};

}  // namespace evergrow
