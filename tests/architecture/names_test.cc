#include "architecture/names.h"

#include <gtest/gtest.h>

#include <map>

namespace placet::architecture {
namespace {

using Names = std::vector<std::string>;

TEST(NamesTest, NoTwoTypesHaveOneName) {
  std::map<std::string, std::string> where;
  for (const char* top : {"src", "tests", "benchmarks", "fuzz"}) {
    for (const SourceFile& file : cpp_files_below(top)) {
      for (const std::string& name : types_defined(file)) {
        const auto [first, is_new] = where.emplace(name, file.path);
        EXPECT_TRUE(is_new) << name << " is in " << first->second << " and in " << file.path;
      }
    }
  }
  EXPECT_GT(where.size(), 300U) << "the test reads the wrong folder";
}

Names names_in(std::vector<std::string> lines) {
  return types_defined({"src/model/x.h", "model", std::move(lines)});
}

TEST(TypesDefinedTest, HaveTheirNamespaces) {
  EXPECT_EQ(names_in({"namespace placet {", "struct A {", "};", "enum class B : std::uint8_t {",
                      "class C : public A {", "struct D {};", "}  // namespace placet"}),
            (Names{"placet::A", "placet::B", "placet::C", "placet::D"}));
  EXPECT_EQ(names_in({"namespace placet::algebra {", "struct A::Part {"}),
            Names{"placet::algebra::A::Part"});
  EXPECT_EQ(names_in({"namespace a {", "}  // namespace a", "struct A {"}), Names{"A"});
}

TEST(TypesDefinedTest, AreNotThoseThatAreOnlyNamed) {
  EXPECT_EQ(names_in({"class A;", "enum class B : std::uint8_t;", "  struct Inner {",
                      "// struct C {", "struct D x = y;"}),
            Names{});
}

TEST(TypesDefinedTest, AreNotThoseOfOneFileAlone) {
  EXPECT_EQ(names_in({"namespace placet {", "namespace {", "struct A {", "}  // namespace",
                      "struct B {", "}  // namespace placet"}),
            Names{"placet::B"});
}

}  // namespace
}  // namespace placet::architecture
