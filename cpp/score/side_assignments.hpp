// Candidate assignments of centroids to the left or right child, the e of [Ristin2014 Eq. 6].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "kernels/gain_kernels.hpp"
#include "run/random_stream.hpp"

namespace evergrow {

// An assignment and its complement are the same split, so the last centroid always goes left.
// Random candidates are drawn in batches to bound the memory.
class SideAssignments {
  public:
    // All assignments if there are at most `max_count`, else that many different ones from the
    // stream. Call next_batch() for the first batch.
    void start(std::size_t n_centroids, std::size_t max_count, const Stream& stream);
    // Starts again with the same candidates.
    void rewind();
    // Makes the next batch; false if there is none.
    bool next_batch();

    // Candidates in the current batch.
    std::size_t size() const { return size_; }
    // The first candidate with centroids on both sides.
    std::size_t first() const { return enumerated_ ? 1 : 0; }
    bool goes_right(std::size_t candidate, std::size_t centroid) const;
    // The sides of all candidates in the layout of the kernels.
    CandidateMasks masks();
    // For every candidate the sum of `counts`, one per centroid, over the centroids that go right.
    void count_right(const std::int32_t* counts, std::int32_t* right) const;

  private:
    void draw(std::size_t count);
    void enumerate_masks();

    std::size_t n_centroids_ = 0;
    std::size_t n_all_ = 0;   // candidates
    std::size_t n_left_ = 0;  // not yet in a batch
    std::size_t size_ = 0;
    // Enumerated candidate i sends centroid j right if bit j of i is set. They are one batch.
    // Candidate 0 sends all centroids left and is never a valid split.
    bool enumerated_ = true;
    bool is_drawn_ = false;  // all candidates are drawn and in memory
    Stream first_{0}, stream_{0};
    AlignedVector<std::int8_t> masks_;  // n_centroids x stride; enumerated: made on request
    std::size_t stride_ = 0;
    std::vector<std::uint64_t> words_;  // drawn: the bits of each candidate, word by word
    std::vector<std::uint64_t> seen_;   // drawn: hash table of candidates so far
};

}  // namespace evergrow
