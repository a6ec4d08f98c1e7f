// Pages of arrays in an unlinked, memory-mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace evergrow {

// The system frees the file when the last page is released. Pages that were released before are
// used again, unless a process forked in between may still read them.
class SpillFile final : public std::enable_shared_from_this<SpillFile> {
  public:
    // Throws std::system_error if no file can be created in the folder.
    explicit SpillFile(std::string folder);
    ~SpillFile();
    SpillFile(const SpillFile&) = delete;
    SpillFile& operator=(const SpillFile&) = delete;

    // A page with undefined content; all pages of a file must have the same size. Throws
    // std::system_error if the disk is full.
    std::shared_ptr<void> page(std::size_t n_bytes);

    const std::string& folder() const { return folder_; }
    // A child process must not write to the file of its parent.
    bool is_own() const;

  private:
    std::mutex mutex_;
    std::string folder_;
    std::int64_t process_;
    int descriptor_;
    std::size_t size_ = 0;         // of the file
    std::size_t extent_size_ = 0;  // follows from the size of pages
    std::vector<void*> extents_;
    std::vector<void*> free_;  // pages
};

}  // namespace evergrow
