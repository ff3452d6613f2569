// A row's results do not depend on how many rows a call has, whichever kernel serves it.
#include "runtime/dtype_convert.h"
#include "tests/kernel_sources/norm_fixture.h"
#include "tests/support/gpu.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace kiln::testing {
namespace {

class NormBatchesTest : public ::testing::TestWithParam<NormForm> {
 protected:
  void SetUp() override {
    KILN_NEEDS_GPU();
    const auto support = runtime_.device_support(DeviceType::cuda());
    ASSERT_THAT(support, is_ok());
    support_ = *support;
    const auto stream = support_->create_stream(0);
    ASSERT_THAT(stream, is_ok());
    stream_ = *stream;
  }
  void TearDown() override {
    if (support_ != nullptr) (void)support_->destroy_stream(stream_);
  }

  // `count` times the same n elements, which `seed` tells.
  OwnedTensor repeated(DType dtype, const Dims& shape, std::int64_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> values(1, 2);
    std::vector<double> row(static_cast<std::size_t>(n));
    for (double& v : row) v = values(random);
    const std::int64_t bytes = n * size_of(dtype);
    const std::int64_t count = shape.size() == 1 ? 1 : shape[0];
    std::vector<char> all(static_cast<std::size_t>(count * bytes));
    for (std::int64_t r = 0; r < count; ++r)
      internal::store_elements(dtype, all.data() + r * bytes, row.data(), row.size());
    auto tensor = OwnedTensor::allocate(*support_, stream_, dtype, shape);
    EXPECT_THAT(tensor, is_ok());
    EXPECT_THAT(support_->copy_to_device(stream_, tensor->tensor().data, all.data(), all.size()),
                is_ok());
    EXPECT_THAT(support_->synchronize(stream_), is_ok());
    return *std::move(tensor);
  }

  // The bytes of each output of the form for `rows` equal rows.
  std::vector<std::vector<char>> results(Op& op, DType dtype, std::int64_t n, std::int64_t rows) {
    std::vector<OwnedTensor> inputs;
    for (const TensorParam& input : op.signature().inputs) {
      const auto seed = static_cast<unsigned>(inputs.size() + 1);
      inputs.push_back(repeated(dtype, is_factor(input) ? Dims{n} : Dims{rows, n}, n, seed));
    }
    std::vector<Tensor> tensors;
    for (const OwnedTensor& input : inputs) tensors.push_back(input.tensor());
    std::vector<const Tensor*> views;
    for (const Tensor& tensor : tensors) views.push_back(&tensor);
    auto outputs = op.call_allocating(stream_, views);
    EXPECT_THAT(outputs, is_ok());
    std::vector<std::vector<char>> bytes;
    for (const OwnedTensor& output : *outputs) {
      bytes.emplace_back(static_cast<std::size_t>(rows * n * size_of(dtype)));
      EXPECT_THAT(support_->copy_to_host(stream_, bytes.back().data(), output.tensor().data,
                                         bytes.back().size()),
                  is_ok());
    }
    EXPECT_THAT(support_->synchronize(stream_), is_ok());
    return bytes;
  }

  TempDir folder_;
  Runtime runtime_{in_tree_options(folder_.path() + "/cache")};
  DeviceSupport* support_ = nullptr;
  Stream stream_;
};

// Lengths that a block's threads share evenly and not, with accesses of 16 and of 8 bytes; few rows
// and more.
TEST_P(NormBatchesTest, ARowHasTheSameBitsInEveryBatch) {
  const int arch = support_->facts(0)->arch;
  const std::int64_t least = GetParam().least_of_clusters();
  for (const DType dtype : {DType::bfloat16, DType::float32}) {
    for (const std::int64_t bytes : {6000, 16384, 20008, 20016, 28016, 30720, 32768, 80016}) {
      const std::int64_t n = bytes / size_of(dtype);
      const auto op = make_op(runtime_, GetParam().op,
                              {{"normalized_shape", std::vector<std::int64_t>{n}}, {"eps", 1e-5}});
      ASSERT_NE(op, nullptr);
      const auto alone = results(*op, dtype, n, 1);
      ASSERT_FALSE(alone.empty());
      for (const std::int64_t rows : {2, 32, 33, 70}) {
        const auto all = results(*op, dtype, n, rows);
        for (std::size_t i = 0; i < all.size(); ++i) {
          for (std::int64_t r = 0; r < rows; ++r) {
            ASSERT_TRUE(std::equal(alone[i].begin(), alone[i].end(), all[i].begin() + r * bytes))
                << n << " " << to_string(dtype) << ", row " << r << " of " << rows << ", output "
                << i;
          }
        }
      }
      const bool clusters = arch >= 90 && bytes >= least && bytes <= 32768;
      EXPECT_EQ(op->iter_kernels().size(), clusters ? 2u : 1u) << n << " " << to_string(dtype);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, NormBatchesTest, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return std::string(form.param.op); });

}  // namespace
}  // namespace kiln::testing
