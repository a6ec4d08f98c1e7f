// Candidate assignments of centroids to the two children: the e of Eq. (6) in Ristin 2014.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "kernels/gain_kernels.hpp"
#include "run/random_stream.hpp"

namespace evergrow {

// A colouring and its complement are the same split, so the last centroid always goes left.
// Drawn candidates come in batches, so that many of them take little more memory than a few.
class Colourings {
  public:
    // All colourings of the centroids when there are at most `max_count`, otherwise that many
    // different ones drawn from the stream. No batch is made yet.
    void start(std::size_t n_centroids, std::size_t max_count, const Stream& stream);
    // Back to the first batch.
    void rewind();
    // Makes the next batch; false if there is none.
    bool next_batch();

    // Of the current batch.
    std::size_t size() const { return size_; }
    // The first candidate that is a split.
    std::size_t first() const { return enumerated_ ? 1 : 0; }
    bool goes_right(std::size_t candidate, std::size_t centroid) const;
    // The same for all, as kernels read it.
    CandidateMasks masks();
    // For every candidate the sum of `counts` (one per centroid) over the centroids that go
    // right.
    void count_right(const std::int32_t* counts, std::int32_t* right) const;

  private:
    void draw(std::size_t count);
    void enumerate_masks();

    std::size_t n_centroids_ = 0;
    std::size_t n_all_ = 0;   // candidates
    std::size_t n_left_ = 0;  // still to come
    std::size_t size_ = 0;
    // Enumerated candidate i sends centroid j right when bit j of i is set; candidate 0 sends
    // none and is never valid. They are one batch.
    bool enumerated_ = true;
    bool is_drawn_ = false;  // all are, and at hand
    Stream first_{0}, stream_{0};
    AlignedVector<std::int8_t> masks_;  // n_centroids x stride; enumerated: only if asked for
    std::size_t stride_ = 0;
    std::vector<std::uint64_t> words_;  // drawn: the bits of each candidate, word by word
    std::vector<std::uint64_t> seen_;   // drawn: in this batch and before
};

}  // namespace evergrow
