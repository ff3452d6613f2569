// What holds for every op there is, in the tree and from backends.
#include <kiln/kiln.h>

#include "tests/support/status_matchers.h"
#include "tests/support/toy_op.h"
#include "tests/support/toy_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The faults of every op's interfaces, one line each.
std::vector<std::string> interface_faults(Runtime& runtime) {
  static const std::regex good("[A-Z][A-Za-z0-9]*(Fwd|Bwd)Interface");
  std::vector<std::string> faults;
  for (const std::string& name : runtime.op_names()) {
    const OpType& type = **runtime.op_type(name);
    if (type.interfaces.empty() && !runtime.kernel_rows(name).empty())
      faults.push_back(name + " holds kernels and has no interfaces: declare interfaces instead");
    for (const InterfaceType& interface : type.interfaces) {
      if (!std::regex_match(interface.type_name, good))
        faults.push_back(interface.type_name + " is not named {Name}{Fwd|Bwd}Interface");
    }
    for (const KernelRow& row : runtime.kernel_rows(name)) {
      if (row.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
        faults.push_back(name + ": the key " + row.key + " is not snake_case");
    }
  }
  return faults;
}

TEST(InventoryTest, EveryOpThatHoldsKernelsDeclaresItsInterfaces) {
  RuntimeOptions options;
  options.load_installed_backends = false;
  Runtime runtime(options);
  ASSERT_FALSE(runtime.op_names().empty());
  EXPECT_THAT(interface_faults(runtime), IsEmpty());
}

struct LooseNameInterface : KernelInterface<ToyCall> {
  KILN_KERNEL_INTERFACE(LooseNameInterface, forward)
  virtual absl::Status forward(const Stream& stream) const = 0;
};

OpType op_of(const std::string& name, std::vector<InterfaceType> interfaces) {
  OpType type;
  type.signature = ToyFwdOp::signature();
  type.signature.op = name;
  type.interfaces = std::move(interfaces);
  type.create = [](const ParamValues&, const OpOptions&) -> absl::StatusOr<std::unique_ptr<Op>> {
    return absl::UnimplementedError("only looked at");
  };
  return type;
}

TEST(InventoryTest, AnOpWithKernelsAndWithoutInterfacesIsFoundHereAndWhenItIsConstructed) {
  ToyRuntime toy;
  Registry registry("in-tree");
  registry.add_op_type(op_of("ToyLooseFwdOp", {}));
  registry.add_op_type(
      op_of("ToyMisnamedFwdOp",
            registry_detail::interface_types(Interfaces<Named<"loose", LooseNameInterface>>{})));
  registry.register_kernel_type("ToyLooseFwdOp", "TileKernel", kernel_type<ToyPlain>());
  ASSERT_THAT(toy.runtime.commit(std::move(registry)), is_ok());
  EXPECT_THAT(
      interface_faults(toy.runtime),
      ElementsAre(
          HasSubstr(
              "ToyLooseFwdOp holds kernels and has no interfaces: declare interfaces instead"),
          HasSubstr("TileKernel is not snake_case"), HasSubstr("LooseNameInterface is not named")));
  OpOptions options;
  options.runtime = &toy.runtime;
  EXPECT_THAT(prepare_op("ToyLooseFwdOp", {}, options),
              status_is(absl::StatusCode::kInvalidArgument,
                        AllOf(HasSubstr("keys implement none of its kernel interfaces"),
                              HasSubstr("declare interfaces instead"))));
}

}  // namespace
}  // namespace kiln::testing
