// Pages in a file, mapped into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "arrays/paged_array.hpp"

namespace evergrow {

// The file belongs to one model while that lives, and goes with it; the system reads and writes
// it as memory is needed. It is made under another name and takes its own when `publish` is
// called: until then a file that was there, and the model that uses it, are untouched.
class MappedFile final : public PageSource {
  public:
    // Throws std::system_error if the file cannot be made, std::invalid_argument if there is a
    // file of this name that is not such a file.
    explicit MappedFile(std::string path);
    ~MappedFile() override;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::shared_ptr<void> next_page(std::size_t n_bytes) override;
    void publish();

    const std::string& path() const { return path_; }
    // Empty if the file is as this left it, else what is wrong. A mapped file that was cut short
    // must not be touched: the system would end the process.
    std::string problem() const;

    // Pages are shared by all who copy the samples, so only the latest copy may add to them.
    std::uint64_t latest = 0;

  private:
    struct Handle;

    std::string path_;
    std::string name_;          // what it is called now
    std::int64_t process_ = 0;  // a child must not change the file of its parent
    std::unique_ptr<Handle> handle_;
    std::size_t size_ = 0;  // of the file
    std::shared_ptr<void> extent_;
    std::size_t extent_size_ = 0, extent_used_ = 0;
};

}  // namespace evergrow
