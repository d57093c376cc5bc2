// Programs as text: what is printed reads back as the same program.
#include "program/text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "program/adjoint.h"
#include "program/kernel_text.h"
#include "program/samples.h"
#include "program/tokens.h"

namespace placet {
namespace {

TEST(ProgramTextTest, APrintedProgramReadsBackAsTheSame) {
  for (const char* name : {"linear", "loose", "everything"}) {
    const Program program = sample_program(name);
    const std::string text = to_text(program);
    EXPECT_EQ(program_from(text, "print"), program) << text;
    EXPECT_EQ(to_text(program_from(text, "print")), text);
  }
}

TEST(ProgramTextTest, AProgramInItsUsualSpellingPrintsAsItIsWritten) {
  EXPECT_EQ(to_text(sample_program("everything")), sample_text("everything"));
}

TEST(ProgramTextTest, OtherSpellingsAreTheSameProgram) {
  EXPECT_EQ(sample_program("loose"), sample_program("everything"));
}

// The example of docs/formats.md, section 10.
TEST(ProgramTextTest, TheExampleOfTheDocumentationReads) {
  std::ifstream in(PLACET_SOURCE_DIR "/docs/formats.md", std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::string fence = "```\n";
  const std::size_t begin = page.find(fence + "placet program 1");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find(fence, begin + fence.size());
  const std::string text = page.substr(begin + fence.size(), end - begin - fence.size());
  EXPECT_EQ(program_from(text, "formats.md"), sample_program("linear"));
}

// Four devices in two classes, built by hand: what no text was read from prints and reads.
TEST(ProgramTextTest, AProgramBuiltOfStructsReadsBack) {
  const IndexTerm u{.variable = IndexTerm::Variable::unit};
  const IndexTerm before{.variable = IndexTerm::Variable::unit, .offset = -1};
  Program p;
  p.axes = {{.name = "pp", .degree = 2, .shares = {3, 1}},
            {.name = "dp", .degree = 2},
            {.name = "steps of work", .degree = 3, .shares = {1, 1, 2}}};
  p.dims = {{.name = "...", .extent = 7}, {.name = "a \"b\" \\c", .extent = 4, .chosen = 2}};
  p.kernels = {kernel_from("kernel same(x[...]) -> (y[...]) { y[...] = x[...] }")};
  p.families = {
      {.name = "over",
       .type = {.dtype = Dtype::nf4, .pieces = {{.dims = {{.dim = 1, .by = {{0}, {1}}}}}}},
       .by_unit = false,
       .by_micro_batch = false,
       .on_host = true}};
  p.procedures = {{.name = "for", .body = {}}, {.name = "over", .body = {}}};
  p.procedures[1].body = {{Call{.procedure = 0, .unit = u, .micro_batch = before}},
                          {Instruction{.kind = InstructionKind::free, .inputs = {{.family = 0}}}}};
  p.classes = {{.name = "x", .box = {{0}, {}}}, {.name = "y", .box = {{1}, {0, 1}}}};
  p.classes[0].body = {
      {Instruction{.kind = InstructionKind::record, .phase = StepPhase::update, .event = 3}},
      {Call{.procedure = 1, .unit = {.offset = -2}, .micro_batch = {}}}};
  const std::string text = to_text(p);
  EXPECT_EQ(program_from(text, "print"), p) << text;
}

// Kernels number their dims and inner tensors as they were made, which the text keeps.
TEST(ProgramTextTest, DerivedKernelsReadBackAsTheSame) {
  const Kernel linear = kernel_from(
      "kernel f(x[s i], w[o i]) -> (y[s o]) {\n"
      "  y[s o] = x[s i] * w[o i]\n}");
  const Kernel softmax = kernel_from(
      "kernel g(z[s v], t[s v]) -> (p[s v]) {\n"
      "  e[s v] = exp(z[s v])\n  n[s] = e[s v]\n"
      "  p[s v] = ratio(e[s v], n[s])\n"
      "}");
  const Kernel both = fuse(linear, softmax, {0, -1}, {0});
  EXPECT_EQ(kernel_from(to_text(both)), both) << to_text(both);
  const auto back = adjoint_of(both, {both.inputs}, {0, 1});
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(kernel_from(to_text(back->kernel)), back->kernel) << to_text(back->kernel);
}

// A row of instructions of one buffer stands on lines of sixteen; each is one of its own.
TEST(ProgramTextTest, RowsOfAllocationsStandOnOneLine) {
  Program p = sample_program("linear");
  std::vector<Step>& body = p.classes[0].body;
  for (int i = 0; i < 40; ++i) {
    body.push_back({Instruction{.kind = InstructionKind::zero,
                                .phase = StepPhase::update,
                                .outputs = {{.family = i % 2 == 0 ? 0 : 6}}}});
  }
  const std::string text = to_text(p);
  EXPECT_EQ(program_from(text, "print"), p);
  EXPECT_NE(text.find("  zero w, loss, w, loss, w, loss, w, loss, w, loss, w, loss, w, loss, w, "
                      "loss\n  zero w, loss"),
            std::string::npos)
      << text;
}

TEST(ProgramTextTest, NamesAreQuotedWhereTheyAreNoWords) {
  EXPECT_EQ(spelled("w.q"), "w.q");
  EXPECT_EQ(spelled("d'0-x_1"), "d'0-x_1");
  EXPECT_EQ(spelled("model.layers.0"), "model.layers.0");
  EXPECT_EQ(spelled("a b"), "\"a b\"");
  EXPECT_EQ(spelled("a."), "\"a.\"");
  EXPECT_EQ(spelled("3x"), "\"3x\"");
  EXPECT_EQ(spelled("a\"b\\"), "\"a\\\"b\\\\\"");
}

// What goes round a ring: the part of the next device, and the instruction that brings it.
TEST(ProgramTextTest, PartsOfOtherDevices) {
  std::string text = sample_text("linear");
  text = replaced(text, "buffer count fp32 []",
                  "buffer count fp32 []\nbuffer own fp32 [sample/dp in]\n"
                  "buffer next fp32 [sample/dp+1 in]");
  text = replaced(text, "  phase reduce\n",
                  "  alloc own, next\n  zero own\n  permute next = own over dp shift 1\n"
                  "  free own, next\n  phase reduce\n");
  const Program p = program_from(text, "ring");
  EXPECT_EQ(p.families[6].type.pieces[0].dims[0].shift, 1);
  EXPECT_EQ(program_from(to_text(p), "print"), p);
  EXPECT_NE(to_text(p).find("buffer next fp32 [sample/dp+1 in]\n"), std::string::npos);
  EXPECT_NE(to_text(p).find("  permute next = own over dp shift 1\n"), std::string::npos);
}

// Parts of a program that is not well-formed still print, for the message that says so.
TEST(ProgramTextTest, NumbersOutOfRangePrintAsNumbers) {
  const Program p;
  EXPECT_EQ(to_text(p, BufferRef{.family = 5}), "?5");
  EXPECT_EQ(to_text(p, Call{.procedure = -1}), "?-1(0, 0)");
  const Instruction i{.kind = InstructionKind::compute, .kernel = 2, .positions = {{.dim = 1}}};
  EXPECT_EQ(to_text(p, i), " = ?2(; at ?1)");
}

}  // namespace
}  // namespace placet
