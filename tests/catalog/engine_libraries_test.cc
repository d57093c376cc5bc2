// Options that several engines have (docs/formats.md, section 7).
#include <gtest/gtest.h>

#include "catalog/catalog_files.h"
#include "catalog/profile_catalog.h"
#include "units/error.h"

namespace placet {
namespace {

class Libraries {
 public:
  Libraries() {
    folder_.copy("precisions");
    write_engine("a", R"(, "libraries": ["tiles"])");
    write_engine("b", R"(, "libraries": ["tiles"], "options": {"fused": {"title": "its own",
        "prefetch": {"value": 7, "source": "s"}}})");
    write_engine("c", "");
    write_library("tiles", R"("fused": {"title": "of the library", "prefetch": {"value": 3,
        "source": "s"}}, "more": {"title": "both", "includes": ["fused"]})");
  }

  void write_engine(const std::string& name, const std::string& rest) const {
    folder_.write("engines/" + name + "@1.json", R"({"schema": "placet.engine/1", "name": ")" +
                                                     name + R"(", "version": "1", "date": "2025")" +
                                                     rest + "}");
  }
  void write_library(const std::string& name, const std::string& options) const {
    folder_.write("libraries/" + name + ".json", R"({"schema": "placet.library/1", "name": ")" +
                                                     name + R"(", "title": "t", "options": {)" +
                                                     options + "}}");
  }
  int prefetch(const std::string& engine) const {
    return static_cast<int>(load_profile(catalog(), engine, "--engine").prefetch);
  }
  std::string complaint(const std::string& engine) const {
    return message_of([&] { load_profile(catalog(), engine, "--engine"); }, folder_.path());
  }
  Catalog catalog() const { return Catalog{folder_.path()}; }

 private:
  TestFolder folder_;
};

TEST(EngineLibrariesTest, OptionsAreThoseOfAllEnginesThatNameTheLibrary) {
  const Libraries data;
  EXPECT_EQ(data.prefetch("a@1+fused"), 3);
  EXPECT_EQ(data.prefetch("a@1+more"), 3);
  EXPECT_EQ(data.prefetch("b@1+fused"), 7) << "an engine's own option wins";
  EXPECT_EQ(data.complaint("c@1+fused"),
            "--engine: 'fused' is not an option of c@1; expected no option");
}

TEST(EngineLibrariesTest, WhatIsNoLibraryIsRefused) {
  const Libraries data;
  data.write_engine("d", R"(, "libraries": ["tile"])");
  EXPECT_EQ(data.complaint("d@1"),
            "engines/d@1.json: libraries[0]: 'tile' is no file of data/libraries; expected tiles");
}

TEST(EngineLibrariesTest, FactsAreCheckedWhereNoEngineAsksForThem) {
  const Libraries data;
  EXPECT_NO_THROW(require_readable_library(data.catalog(), "tiles"));
  data.write_library("wrong", R"("x": {"title": "t", "prefech": {"value": 3, "source": "s"}})");
  EXPECT_THROW(require_readable_library(data.catalog(), "wrong"), InputError);
}

}  // namespace
}  // namespace placet
