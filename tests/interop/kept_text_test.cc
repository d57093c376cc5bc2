// Keys changed in a text.
#include "interop/kept_text.h"

#include <gtest/gtest.h>

#include "units/error.h"

namespace placet {
namespace {

std::string changed_json(const std::string& text, const std::vector<KeyChange>& changes) {
  return changed_text(parse_source(text, SourceForm::json, "a.json"), text, changes, {});
}

TEST(KeptTextTest, JsonOnOneLineIsWrittenAnewInItsOrder) {
  EXPECT_EQ(changed_json(R"({"z": {"stage": 1}, "list": [1, 2], "rate": 1e-5})",
                         {{.key = "z.stage", .value = "2"}, {.key = "batch", .value = "64"}}),
            "{\n  \"z\": {\n    \"stage\": 2\n  },\n  \"list\": [\n    1,\n    2\n  ],\n"
            "  \"rate\": 1e-05,\n  \"batch\": 64\n}\n");
  EXPECT_EQ(changed_json(R"({"a": 1, "b": true})", {{.key = "a", .value = {}}}),
            "{\n  \"b\": true\n}\n");
}

TEST(KeptTextTest, JsonWithoutKeysGetsThem) {
  for (const char* empty : {"{}", "{\n}\n", " { } "}) {
    EXPECT_EQ(changed_json(empty, {{.key = "z.stage", .value = "2"}}),
              "{\n  \"z\": {\n    \"stage\": 2\n  }\n}\n");
  }
}

TEST(KeptTextTest, JsonWithoutAChangeStaysAsItIs) {
  EXPECT_EQ(changed_json("{\"a\":1}", {}), "{\"a\":1}");
}

// A key below a number, and one of an object in a list.
TEST(KeptTextTest, WhatCannotBeWrittenAnewIsRefused) {
  EXPECT_THROW(changed_json(R"({"a": 1})", {{.key = "a.b", .value = "2"}}), InputError);
  EXPECT_THROW(changed_json(R"({"a": [{"b": 1}]})", {{.key = "a[0].b", .value = "2"}}), InputError);
}

}  // namespace
}  // namespace placet
