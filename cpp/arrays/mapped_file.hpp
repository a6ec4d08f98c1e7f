// Pages of arrays in a memory-mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "arrays/paged_array.hpp"

namespace evergrow {

// The file belongs to one model and is deleted with it. It is created under a temporary name and
// renamed by `publish`; until then an existing file of that name, and the model that uses it, stay
// as they are.
class MappedFile final : public PageSource {
  public:
    // Throws std::system_error if the file cannot be created, and std::invalid_argument if a file
    // of this name exists that is not a file of samples.
    explicit MappedFile(std::string path);
    ~MappedFile() override;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::shared_ptr<void> next_page(std::size_t n_bytes) override;
    void publish();

    const std::string& path() const { return path_; }
    // What is wrong with the file; empty if nothing is. Reading a mapped file that was truncated
    // would end the process.
    std::string problem() const;

    // All copies of the samples share these pages, so only the latest copy may add to them.
    std::uint64_t latest = 0;

  private:
    struct Handle;

    std::string path_;
    std::string name_;          // current name
    std::int64_t process_ = 0;  // a child process must not change the file of its parent
    std::unique_ptr<Handle> handle_;
    std::size_t size_ = 0;  // of the file
    std::shared_ptr<void> extent_;
    std::size_t extent_size_ = 0, extent_used_ = 0;
};

}  // namespace evergrow
