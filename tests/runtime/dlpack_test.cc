#include <kiln/dlpack.h>

#include "runtime/dlpack_abi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace kiln {
namespace {

using ::testing::HasSubstr;

// A producer's tensor: float32 [2, 3] on the cpu, and how often its deleter ran.
template <typename Managed>
struct Producer {
  std::array<float, 8> data{};
  std::array<std::int64_t, 9> shape{2, 3};
  std::array<std::int64_t, 9> strides{4, 1};
  int deleted = 0;
  Managed managed{};

  Producer() {
    DLTensor& tensor = managed.dl_tensor;
    tensor.data = data.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 2;
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; };
    if constexpr (requires { managed.version; }) managed.version = {1, 0};
  }
  DLTensor& tensor() { return managed.dl_tensor; }
};
using Plain = Producer<DLManagedTensor>;
using Versioned = Producer<DLManagedTensorVersioned>;

TEST(DlpackTest, NullStridesAreContiguous) {
  Plain producer;
  const Tensor tensor = *view_dlpack(&producer.managed);
  EXPECT_EQ(tensor.data, producer.data.data());
  EXPECT_EQ(tensor.device, (Device{DeviceType::cpu(), 0}));
  EXPECT_EQ(tensor.dtype, DType::float32);
  EXPECT_EQ(tensor.shape, (Dims{2, 3}));
  EXPECT_EQ(tensor.strides, (Dims{3, 1}));
}

TEST(DlpackTest, StridesAndByteOffsetAreKept) {
  Plain producer;
  producer.tensor().strides = producer.strides.data();
  producer.tensor().byte_offset = 4;
  const Tensor tensor = *view_dlpack(&producer.managed);
  EXPECT_EQ(tensor.strides, (Dims{4, 1}));
  EXPECT_EQ(tensor.data, &producer.data[1]);
}

TEST(DlpackTest, DeleterRunsOnceForWhatWasTaken) {
  Plain plain;
  Versioned versioned;
  {
    DlpackTensor first = *DlpackTensor::take(&plain.managed);
    DlpackTensor moved = std::move(first);
    EXPECT_EQ(moved.tensor().data, plain.data.data());
    EXPECT_EQ(plain.deleted, 0);
    moved = *DlpackTensor::take(&versioned.managed);
    EXPECT_EQ(plain.deleted, 1);
    EXPECT_EQ(versioned.deleted, 0);
  }
  EXPECT_EQ(plain.deleted, 1);
  EXPECT_EQ(versioned.deleted, 1);
}

TEST(DlpackTest, DeleterMayBeNull) {
  Plain producer;
  producer.managed.deleter = nullptr;
  EXPECT_TRUE(DlpackTensor::take(&producer.managed).ok());
}

TEST(DlpackTest, NothingIsTakenAfterAnError) {
  Plain producer;
  producer.tensor().ndim = 9;
  EXPECT_FALSE(DlpackTensor::take(&producer.managed).ok());
  EXPECT_EQ(producer.deleted, 0);
  EXPECT_FALSE(DlpackTensor::take(static_cast<DLManagedTensor*>(nullptr)).ok());
}

TEST(DlpackTest, ReadOnlyFlagIsReadAndWritten) {
  Versioned producer;
  EXPECT_FALSE(DlpackTensor::take(&producer.managed)->is_read_only());
  producer.managed.flags = 1;
  EXPECT_TRUE(DlpackTensor::take(&producer.managed)->is_read_only());
  const Tensor tensor = *view_dlpack(&producer.managed);
  for (const bool read_only : {false, true}) {
    DLManagedTensorVersioned* out = *to_dlpack_versioned(tensor, nullptr, read_only);
    EXPECT_EQ(out->flags, read_only ? 1u : 0u);
    EXPECT_EQ(out->version.major, 1u);
    out->deleter(out);
  }
}

TEST(DlpackTest, AnotherMajorVersionIsRefused) {
  Versioned producer;
  producer.managed.version = {2, 7};
  const absl::Status status = DlpackTensor::take(&producer.managed).status();
  EXPECT_THAT(message_of(status), HasSubstr("got 2.7"));
  EXPECT_EQ(producer.deleted, 0);
  producer.managed.version = {1, 99};
  EXPECT_TRUE(view_dlpack(&producer.managed).ok());
}

TEST(DlpackTest, EveryDtypeSurvivesTheRoundTrip) {
  const std::pair<DType, DLDataType> published[] = {
      {DType::float16, {2, 16, 1}},     {DType::bfloat16, {4, 16, 1}},
      {DType::float32, {2, 32, 1}},     {DType::float64, {2, 64, 1}},
      {DType::float8_e4m3, {10, 8, 1}}, {DType::float8_e5m2, {12, 8, 1}},
      {DType::int8, {0, 8, 1}},         {DType::int16, {0, 16, 1}},
      {DType::int32, {0, 32, 1}},       {DType::int64, {0, 64, 1}},
      {DType::uint8, {1, 8, 1}},        {DType::boolean, {6, 8, 1}},
  };
  alignas(16) std::array<char, 64> memory{};
  for (const auto& [dtype, code] : published) {
    const Tensor tensor = Tensor::contiguous(memory.data(), {DeviceType::cuda(), 3}, dtype, {2, 2});
    DLManagedTensor* out = *to_dlpack(tensor, nullptr);
    EXPECT_EQ(out->dl_tensor.dtype.code, code.code) << to_string(dtype);
    EXPECT_EQ(out->dl_tensor.dtype.bits, code.bits) << to_string(dtype);
    EXPECT_EQ(out->dl_tensor.dtype.lanes, 1) << to_string(dtype);
    const Tensor back = *view_dlpack(out);
    EXPECT_EQ(back.spec(), tensor.spec());
    EXPECT_EQ(back.strides, tensor.strides);
    EXPECT_EQ(back.data, tensor.data);
    out->deleter(out);
  }
}

TEST(DlpackTest, UnknownTypesAreRefusedWithWhatWasReceived) {
  const DLDataType unknown[] = {{kDLFloat, 32, 4}, {kDLFloat, 32, 0}, {kDLComplex, 64, 1},
                                {kDLUInt, 32, 1},  {kDLInt, 4, 1},    {7, 8, 1},
                                {kDLFloat, 8, 1},  {6, 1, 1}};
  for (const DLDataType& type : unknown) {
    Plain producer;
    producer.tensor().dtype = type;
    const absl::Status status = view_dlpack(&producer.managed).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(message_of(status), HasSubstr("code " + std::to_string(type.code)));
  }
}

TEST(DlpackTest, Devices) {
  const auto device_of = [](int type, int id) {
    Plain producer;
    producer.tensor().device = {static_cast<DLDeviceType>(type), id};
    const auto tensor = view_dlpack(&producer.managed);
    return tensor.ok() ? to_string(tensor->device) : message_of(tensor.status());
  };
  EXPECT_EQ(device_of(kDLCPU, 0), "cpu:0");
  EXPECT_EQ(device_of(kDLCUDA, 2), "cuda:2");
  EXPECT_EQ(device_of(kDLCUDAHost, 0), "cpu:0");
  EXPECT_EQ(device_of(kDLCUDAManaged, 1), "cuda:1");
  EXPECT_THAT(device_of(kDLExtDev, 0), HasSubstr("got device type 12"));
  EXPECT_THAT(device_of(kDLROCM, 0), HasSubstr("got device type 10"));
  EXPECT_THAT(device_of(kDLCUDA, -1), HasSubstr("got -1"));
  EXPECT_THAT(device_of(kDLCUDA, 255), HasSubstr("got 255"));
}

TEST(DlpackTest, ShapesThatCannotBeAreRefused) {
  const auto error_of = [](auto change) {
    Plain producer;
    change(producer);
    const absl::Status status = view_dlpack(&producer.managed).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return message_of(status);
  };
  EXPECT_THAT(error_of([](Plain& p) { p.tensor().ndim = 9; }), HasSubstr("got 9"));
  EXPECT_THAT(error_of([](Plain& p) { p.tensor().ndim = -1; }), HasSubstr("got -1"));
  EXPECT_THAT(error_of([](Plain& p) { p.tensor().shape = nullptr; }), HasSubstr("got null"));
  EXPECT_THAT(error_of([](Plain& p) { p.tensor().data = nullptr; }), HasSubstr("[2, 3]"));
  EXPECT_THAT(error_of([](Plain& p) { p.shape[1] = -3; }), HasSubstr("[2, -3]"));
  EXPECT_THAT(error_of([](Plain& p) { p.shape[1] = std::numeric_limits<std::int64_t>::max(); }),
              HasSubstr("2^63"));
}

TEST(DlpackTest, ScalarsAndEmptyTensors) {
  Plain scalar;
  scalar.tensor().ndim = 0;
  scalar.tensor().shape = nullptr;
  EXPECT_EQ(view_dlpack(&scalar.managed)->elements(), 1);
  Plain empty;
  empty.shape[0] = 0;
  empty.tensor().data = nullptr;
  EXPECT_EQ(view_dlpack(&empty.managed)->elements(), 0);
}

TEST(DlpackTest, ExportReleasesOnceWithTheConsumersDeleter) {
  std::array<float, 12> memory{};
  Tensor tensor = Tensor::contiguous(memory.data(), {DeviceType::cpu(), 0}, DType::float32, {2, 3});
  tensor.strides = {6, 2};
  int released = 0;
  DLManagedTensor* out = *to_dlpack(tensor, [&] { ++released; });
  tensor.shape = {};  // the consumer's arrays are its own
  EXPECT_EQ(out->dl_tensor.ndim, 2);
  EXPECT_EQ(out->dl_tensor.shape[1], 3);
  EXPECT_EQ(out->dl_tensor.strides[0], 6);
  EXPECT_EQ(released, 0);
  out->deleter(out);
  EXPECT_EQ(released, 1);
}

TEST(DlpackTest, DeviceTypesWithoutAWordAreNotHandedOver) {
  Tensor tensor =
      Tensor::contiguous(nullptr, {*DeviceType::named("acme_dlpack"), 0}, DType::float32, {0});
  bool released = false;
  const absl::Status status = to_dlpack(tensor, [&] { released = true; }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(message_of(status), HasSubstr("acme_dlpack:0"));
  EXPECT_FALSE(released);
  tensor.device = {};
  tensor.strides = {};
  EXPECT_FALSE(to_dlpack(tensor, nullptr).ok());
}

}  // namespace
}  // namespace kiln
