#include "arrays/mapped_file.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#if defined(_WIN32)

namespace evergrow {

struct MappedFile::Handle {};

MappedFile::MappedFile(std::string) {
    throw std::runtime_error("samples cannot be stored in a file on Windows; use memory=None");
}
MappedFile::~MappedFile() = default;
std::shared_ptr<void> MappedFile::next_page(std::size_t) { return nullptr; }
void MappedFile::publish() {}
std::string MappedFile::problem() const { return {}; }

}  // namespace evergrow

#else

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace evergrow {
namespace {

// The file grows by extents of this size, a multiple of every page size; each is mapped once.
constexpr std::size_t kExtent = std::size_t{4} << 20;
// Size of the header, which identifies a file of samples.
constexpr std::size_t kHeader = std::size_t{64} << 10;
constexpr char kMagic[] = "evergrow samples";

[[noreturn]] void fail(const std::string& what, const std::string& path) {
    throw std::system_error(errno, std::generic_category(), what + " '" + path + "'");
}

bool is_same_file(const struct stat& a, const struct stat& b) {
    return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

// An existing file is only replaced if it is a file of samples.
void check_replaceable(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT) return;
    if (descriptor < 0) fail("cannot read", path);
    char found[sizeof kMagic] = {};
    const bool same = read(descriptor, found, sizeof found) == sizeof found &&
                      std::memcmp(found, kMagic, sizeof found) == 0;
    close(descriptor);
    if (!same)
        throw std::invalid_argument("memory must name a new file, but '" + path +
                                    "' exists and holds something else");
}

std::string temporary_name(const std::string& path) {
    static std::atomic<unsigned> n_made{0};
    return path + ".new-" + std::to_string(getpid()) + "-" + std::to_string(n_made++);
}

// Allocates disk space now where the system can: if the disk were full at a later write, the
// process would end.
int extend_file(int descriptor, std::size_t from, std::size_t length) {
#if defined(__linux__)
    return posix_fallocate(descriptor, static_cast<off_t>(from), static_cast<off_t>(length));
#else
    return ftruncate(descriptor, static_cast<off_t>(from + length)) == 0 ? 0 : errno;
#endif
}

}  // namespace

struct MappedFile::Handle {
    int descriptor;
    ~Handle() { close(descriptor); }
};

MappedFile::MappedFile(std::string path)
    : path_(std::move(path)), name_(temporary_name(path_)), process_(getpid()) {
    check_replaceable(path_);
    const int descriptor = open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0) fail("cannot create", name_);
    handle_.reset(new Handle{descriptor});
    if (write(descriptor, kMagic, sizeof kMagic) != sizeof kMagic ||
        ftruncate(descriptor, static_cast<off_t>(kHeader)) != 0) {
        const int error = errno;
        unlink(name_.c_str());
        errno = error;
        fail("cannot write", name_);
    }
    size_ = kHeader;
}

MappedFile::~MappedFile() {
    // A different file that has the name now stays.
    struct stat own = {}, found = {};
    if (getpid() == process_ && fstat(handle_->descriptor, &own) == 0 &&
        stat(name_.c_str(), &found) == 0 && is_same_file(own, found))
        unlink(name_.c_str());
}

void MappedFile::publish() {
    if (name_ == path_) return;
    check_replaceable(path_);
    if (rename(name_.c_str(), path_.c_str()) != 0)
        fail("cannot rename the temporary file to", path_);
    name_ = path_;
}

std::shared_ptr<void> MappedFile::next_page(std::size_t n_bytes) {
    if (extent_used_ + n_bytes > extent_size_) {
        const std::size_t length = (n_bytes + kExtent - 1) / kExtent * kExtent;
        errno = extend_file(handle_->descriptor, size_, length);
        if (errno != 0) fail("cannot extend", name_);
        void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED,
                            handle_->descriptor, static_cast<off_t>(size_));
        if (memory == MAP_FAILED) fail("cannot map", name_);
        extent_ = std::shared_ptr<void>(memory, [length](void* p) { munmap(p, length); });
        extent_size_ = length;
        extent_used_ = 0;
        size_ += length;
    }
    auto* page = static_cast<char*>(extent_.get()) + extent_used_;
    extent_used_ += n_bytes;
    return std::shared_ptr<void>(extent_, page);
}

std::string MappedFile::problem() const {
    struct stat own = {}, found = {};
    if (getpid() != process_) return "it belongs to another process";
    if (stat(name_.c_str(), &found) != 0) return "it was deleted";
    if (fstat(handle_->descriptor, &own) != 0) return "it cannot be read";
    if (!is_same_file(own, found)) return "another file replaced it";
    if (static_cast<std::size_t>(own.st_size) < size_)
        return "it was truncated from " + std::to_string(size_) + " to " +
               std::to_string(own.st_size) + " bytes";
    return {};
}

}  // namespace evergrow

#endif
