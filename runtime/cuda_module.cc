#include "runtime/cuda_module.h"

#include <absl/strings/str_format.h>

#include <array>
#include <cstring>
#include <elf.h>
#include <vector>

namespace kiln {
namespace {

// True when the image is an ELF file whose tables and sections lie within it. The driver is told no
// size and trusts the file, so one that was cut short must not reach it.
bool is_whole_elf(std::string_view image) {
  Elf64_Ehdr header;
  if (image.size() < sizeof(header)) return false;
  std::memcpy(&header, image.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
    return false;
  const auto fits = [&](std::uint64_t offset, std::uint64_t bytes) {
    return offset <= image.size() && bytes <= image.size() - offset;
  };
  if (!fits(header.e_phoff, std::uint64_t{header.e_phnum} * header.e_phentsize)) return false;
  if (!fits(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr))) return false;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_NOBITS && !fits(section.sh_offset, section.sh_size)) return false;
  }
  return true;
}

// What the driver's own assembler has to say about PTX that it refuses. Lives as long as its
// library: loading is lazy by default, so the driver may assemble, and write here, later than in
// cuLibraryLoadData.
class JitLog {
 public:
  static constexpr unsigned int kOptions = 2;
  CUjit_option* options() { return options_.data(); }
  void** values() { return values_.data(); }
  std::string_view text() const { return std::string_view(buffer_.data()); }

 private:
  std::array<char, 4096> buffer_{};
  std::array<CUjit_option, kOptions> options_{CU_JIT_ERROR_LOG_BUFFER,
                                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  // Sizes travel in the pointer itself.
  std::array<void*, kOptions> values_{buffer_.data(), reinterpret_cast<void*>(buffer_.size() - 1)};
};

class CudaImage : public LoadedImage {
 public:
  CudaImage(const CudaDriver& driver, const CudaContext& context)
      : driver_(driver), context_(context) {}

  ~CudaImage() override {
    if (library_ == nullptr || process_is_exiting()) return;
    const RelaxedCapture relaxed(driver_);
    const ScopedContext current(driver_, context_);
    driver_.library_unload(library_);  // nothing can be done when it fails
  }

  CudaImage(const CudaImage&) = delete;
  CudaImage& operator=(const CudaImage&) = delete;

  std::span<void* const> functions() const override { return functions_; }

  absl::Status load(std::string_view kind, std::string_view image) {
    // The driver is told no size: it reads a cubin's from its header and PTX up to a final zero. It
    // keeps a copy.
    if (kind == "ptx") log_ = std::make_unique<JitLog>();
    const std::string terminated(log_ == nullptr ? "" : image);
    const CUresult result = driver_.library_load_data(
        &library_, log_ == nullptr ? image.data() : terminated.c_str(),
        log_ == nullptr ? nullptr : log_->options(), log_ == nullptr ? nullptr : log_->values(),
        log_ == nullptr ? 0 : JitLog::kOptions, nullptr, nullptr, 0);
    if (result == CUDA_SUCCESS) return absl::OkStatus();
    library_ = nullptr;
    return error(result, absl::StrFormat("loading a %s image of %d bytes for sm_%d", kind,
                                         image.size(), context_.arch));
  }

  absl::Status find(const std::string& name) {
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    CUresult result = driver_.library_get_kernel(&kernel, library_, name.c_str());
    if (result != CUDA_SUCCESS) return error(result, "finding kernel \"" + name + "\"");
    result = driver_.kernel_get_function(&function, kernel);
    // Loading is lazy by default; older drivers without cuFuncLoad do the rest at the first launch.
    if (result == CUDA_SUCCESS && driver_.func_load != nullptr)
      result = driver_.func_load(function);
    if (result != CUDA_SUCCESS) return error(result, "loading kernel \"" + name + "\"");
    functions_.push_back(function);
    return absl::OkStatus();
  }

 private:
  absl::Status error(CUresult result, const std::string& what) const {
    std::string text = absl::StrFormat("cuda:%d: %s", context_.index, what);
    if (log_ != nullptr && !log_->text().empty()) text += absl::StrFormat(" (%s)", log_->text());
    return driver_.status(result, text);
  }

  const CudaDriver& driver_;
  const CudaContext& context_;
  CUlibrary library_ = nullptr;
  std::unique_ptr<JitLog> log_;  // for PTX only
  std::vector<void*> functions_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedImage>> load_cuda_image(const CudaDriver& driver,
                                                             const CudaContext& context,
                                                             std::string_view kind,
                                                             std::string_view image,
                                                             std::span<const std::string> kernels) {
  if ((kind != "cubin" && kind != "ptx") || image.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cuda:%d: an image must be a cubin or ptx with contents: got %d bytes of "
                        "kind \"%s\"",
                        context.index, image.size(), kind));
  }
  if (kind == "cubin" && !is_whole_elf(image)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cuda:%d: a cubin must be a whole ELF file: got %d bytes that are damaged or none",
        context.index, image.size()));
  }
  const RelaxedCapture relaxed(driver);
  const ScopedContext current(driver, context);
  KILN_RETURN_IF_ERROR(driver.status(
      current.result(), absl::StrFormat("cuda:%d: making the context current", context.index)));
  auto loaded = std::make_unique<CudaImage>(driver, context);
  KILN_RETURN_IF_ERROR(loaded->load(kind, image));
  for (const std::string& kernel : kernels) KILN_RETURN_IF_ERROR(loaded->find(kernel));
  return loaded;
}

absl::Status prepare_cuda_function(const CudaDriver& driver, const CudaContext& context,
                                   CUfunction function, std::uint32_t smem_bytes) {
  const auto what = [&](std::string_view step) {
    return absl::StrFormat("cuda:%d: %s of a kernel", context.index, step);
  };
  const RelaxedCapture relaxed(driver);
  const ScopedContext current(driver, context);
  KILN_RETURN_IF_ERROR(driver.status(current.result(), what("preparing the launch")));
  int fixed = 0;
  KILN_RETURN_IF_ERROR(driver.status(
      driver.func_get_attribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function),
      what("reading the static shared memory")));
  if (std::int64_t{fixed} + smem_bytes > context.smem_budget) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "cuda:%d: a block's shared memory must fit the device's limit of %d bytes: got %d dynamic "
        "and %d static bytes",
        context.index, context.smem_budget, smem_bytes, fixed));
  }
  int allowed = 0;
  KILN_RETURN_IF_ERROR(
      driver.status(driver.func_get_attribute(
                        &allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function),
                    what("reading the allowed shared memory")));
  const int wanted = static_cast<int>(smem_bytes);  // fits: it is below the budget
  if (wanted > allowed) {
    KILN_RETURN_IF_ERROR(
        driver.status(driver.func_set_attribute(
                          function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, wanted),
                      absl::StrFormat("cuda:%d: allowing %d bytes of dynamic shared memory a block",
                                      context.index, wanted)));
  }
  if (context.arch < 90) return absl::OkStatus();
  return driver.status(
      driver.func_set_attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
      what("allowing large clusters"));
}

}  // namespace kiln
