#include "samples/row_view.hpp"

#include <algorithm>

namespace evergrow {

void LoadedRows::load(const std::int32_t* rows, std::size_t n) {
    if (!memory_) {
        // The system provides memory on first use, so allocating the maximum costs nothing. An
        // array that grows would hold its rows twice while it moves.
        const std::size_t n_bytes = std::min(max_rows_, samples_.size()) * row_bytes();
        memory_ = std::shared_ptr<void>(allocate_aligned(n_bytes),
                                        [n_bytes](void* p) { free_aligned(p, n_bytes); });
        place_.resize(samples_.size());
    }
    const std::size_t width = samples_.width();
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (i > 0 && rows[i] == rows[i - 1]) continue;
        if (samples_.precision() == Precision::kFloat32)
            std::copy_n(samples_.full(rows[i]), width,
                        static_cast<float*>(memory_.get()) + next * width);
        else
            std::copy_n(samples_.half(rows[i]), width,
                        static_cast<std::uint16_t*>(memory_.get()) + next * width);
        place_[static_cast<std::size_t>(rows[i])] = next++;
    }
    are_loaded_ = true;
}

}  // namespace evergrow
