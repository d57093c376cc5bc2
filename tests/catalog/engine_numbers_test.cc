// Numbers of an engine that users set.
#include <gtest/gtest.h>

#include "catalog/profile_catalog.h"
#include "units/error.h"

namespace placet {
namespace {

Profile loaded(const std::string& name) { return load_profile(find_catalog(), name, "--engine"); }

// The amount of bytes of a term of memory as its fact spells it.
std::string fact_of(const Profile& profile, const std::string& key) {
  for (const Fact& fact : profile.facts) {
    if (fact.key == key) return fact.value;
  }
  return "";
}

// 5e7 elements in bf16: 100,000,000 bytes.
TEST(EngineNumbersTest, ASizeStandsInEveryFactThatFollowsFromIt) {
  const Profile profile = loaded("deepspeed@0.19.3+reduce_bucket_size=5e7");
  EXPECT_EQ(profile.version, "0.19.3+reduce_bucket_size=50000000");
  EXPECT_EQ(fact_of(profile, "bucket_elements"), "50000000");
  EXPECT_NE(fact_of(profile, "memory.bucket of gradients in backward").find("100000000"),
            std::string::npos);
}

// Two buffers with overlap: 200,000,000 bytes, whatever the order of the words.
TEST(EngineNumbersTest, ANumberKnowsTheOptionsBesideIt) {
  for (const char* name : {"deepspeed@0.19.3+overlap+reduce_bucket_size=50000000",
                           "deepspeed@0.19.3+reduce_bucket_size=50000000+overlap"}) {
    const Profile profile = loaded(name);
    EXPECT_EQ(profile.version, "0.19.3+overlap+reduce_bucket_size=50000000");
    EXPECT_NE(fact_of(profile, "memory.bucket of gradients in backward").find("200000000"),
              std::string::npos);
  }
}

// At most the threshold stays gathered: below threshold + 1. 50 MiB are 52,428,800 bytes.
TEST(EngineNumbersTest, NumbersAreAddedToAndMultiplied) {
  EXPECT_EQ(fact_of(loaded("deepspeed@0.19.3+stage3_param_persistence_threshold=40960"),
                    "persistent_elements"),
            "40961");
  EXPECT_EQ(fact_of(loaded("nanotron@2026.04+ddp_bucket_cap_mb=50"), "bucket_bytes"), "52428800");
}

std::string fault_of(const std::string& name) {
  try {
    loaded(name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(EngineNumbersTest, WhatIsNoNumberOfTheEngineIsRefused) {
  EXPECT_EQ(fault_of("nanotron@2026.04+ddp_bucket_cap=50"),
            "--engine: 'ddp_bucket_cap' is no number that nanotron@2026.04 lets one set; expected "
            "ddp_bucket_cap_mb or make_vocab_size_divisible_by; did you mean 'ddp_bucket_cap_mb'?");
  EXPECT_EQ(fault_of("nanotron@2026.04+ddp_bucket_cap_mb=0.5"),
            "--engine: 'ddp_bucket_cap_mb=0.5' is out of range; expected a whole number from 1 to "
            "1000000");
}

}  // namespace
}  // namespace placet
