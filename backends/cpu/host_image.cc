#include "host_image.h"

#include <absl/strings/str_format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kiln::cpu {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#endif

// The system's loader trusts what it maps: a cut file would end the process with SIGBUS instead of
// an error.
absl::Status check_shared_object(std::string_view image) {
  const auto refuse_image = [&](const char* what) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cpu load: the image must be a whole 64-bit shared object of this machine: %s (%d bytes)",
        what, image.size()));
  };
  Elf64_Ehdr header;
  if (image.size() < sizeof header) return refuse_image("it is shorter than an ELF header");
  std::memcpy(&header, image.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return refuse_image("it does not begin as an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return refuse_image("it is for another machine");
  }
  if (header.e_type != ET_DYN) return refuse_image("it is no shared object");
  // The linker puts the section headers last.
  const std::uint64_t sections = std::uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_shoff > image.size() || image.size() - header.e_shoff < sections)
    return refuse_image("its end is missing");
  const std::uint64_t segments = std::uint64_t{header.e_phnum} * header.e_phentsize;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > image.size() ||
      image.size() - header.e_phoff < segments) {
    return refuse_image("its segment table is damaged");
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, image.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_offset > image.size() || image.size() - segment.p_offset < segment.p_filesz) {
      return refuse_image("a segment lies beyond its end");
    }
  }
  return absl::OkStatus();
}

absl::Status errno_status(int error, std::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrFormat("cpu load: %s: %s (errno %d)", what, strerrordesc_np(error), error));
}

// A file that only this process sees; closed, and removed where it has a name, by the destructor.
class PrivateFile {
 public:
  PrivateFile(int fd, std::string folder) : fd_(fd), folder_(std::move(folder)) {}
  PrivateFile(PrivateFile&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), folder_(std::exchange(other.folder_, std::string())) {}
  PrivateFile& operator=(PrivateFile&&) = delete;
  ~PrivateFile() {
    if (fd_ >= 0) close(fd_);
    if (folder_.empty()) return;
    unlink(file_path().c_str());
    rmdir(folder_.c_str());
  }

  int fd() const { return fd_; }
  // A path by which the loader finds it. The loader takes a name it has seen for the object it
  // knows, and descriptors are reused, so no two paths may be equal: each spells the same way
  // differently.
  std::string path() const { return folder_.empty() ? unique_descriptor_path() : file_path(); }

 private:
  std::string file_path() const { return folder_ + "/kernel.so"; }
  std::string unique_descriptor_path() const {
    static std::atomic<std::uint64_t> count{0};
    std::string path = "/proc/self/fd";
    for (std::uint64_t n = count.fetch_add(1, std::memory_order_relaxed); n != 0; n >>= 1) {
      path += (n & 1) != 0 ? "/." : "/";
    }
    return path + "/" + std::to_string(fd_);
  }

  int fd_;
  std::string folder_;
};

// In memory where the system allows it; otherwise in a new folder of mode 0700 under /tmp.
absl::StatusOr<PrivateFile> make_private_file() {
  const int fd = memfd_create("kiln-kernel", MFD_CLOEXEC);
  if (fd >= 0 && access("/proc/self/fd", X_OK) == 0) return PrivateFile(fd, "");
  if (fd >= 0) close(fd);
  std::string folder = "/tmp/kiln-cpu-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr)
    return errno_status(errno, "must be able to make a folder under /tmp");
  const int named =
      open((folder + "/kernel.so").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  const int error = errno;
  PrivateFile file(named, folder);
  if (named < 0) return errno_status(error, "must be able to make a file in " + folder);
  return file;
}

absl::Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    const int error = errno;
    if (written < 0 && error == EINTR) continue;
    if (written < 0) return errno_status(error, "must be able to write the image");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

// The loader's last message on this thread.
std::string loader_message() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

class HostImage final : public LoadedImage {
 public:
  explicit HostImage(void* handle) : handle_(handle) {}
  HostImage(const HostImage&) = delete;
  HostImage& operator=(const HostImage&) = delete;
  ~HostImage() override { dlclose(handle_); }

  std::span<void* const> functions() const override { return functions_; }

  absl::Status find(const std::string& kernel) {
    dlerror();
    void* const function = dlsym(handle_, kernel.c_str());
    if (function == nullptr) {
      return absl::NotFoundError(absl::StrFormat(
          "cpu load: the image must define the kernel '%s' as an exported C function: %s", kernel,
          loader_message()));
    }
    functions_.push_back(function);
    return absl::OkStatus();
  }

 private:
  void* handle_;
  std::vector<void*> functions_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedImage>> load_host_image(std::string_view image,
                                                             std::span<const std::string> kernels) {
  KILN_RETURN_IF_ERROR(check_shared_object(image));
  KILN_ASSIGN_OR_RETURN(const PrivateFile file, make_private_file());
  KILN_RETURN_IF_ERROR(write_all(file.fd(), image));
  void* const handle = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cpu load: the system's loader must accept the image: %s", loader_message()));
  }
  auto loaded = std::make_unique<HostImage>(handle);
  for (const std::string& kernel : kernels) KILN_RETURN_IF_ERROR(loaded->find(kernel));
  return std::unique_ptr<LoadedImage>(std::move(loaded));
}

}  // namespace kiln::cpu
