#include "report/html.h"

#include <gtest/gtest.h>

#include "report/hand_made.h"
#include "report/html_parts.h"
#include "report/program.h"

namespace placet {
namespace {

Judged hostile() {
  Judged judged = hand_made();
  Job job = *judged.job;
  job.model.name = "<script>alert(1)</script>";
  job.model.notes = {"\"><img src=x onerror=y>"};
  job.placement_text = "dp=8:<b>";
  job.cluster->name = "'&\"";
  judged.job = std::make_shared<const Job>(job);
  judged.derivation.findings = {{.rule = "<i>",
                                 .severity = Severity::error,
                                 .where = "<u>",
                                 .message = "<s>",
                                 .cure = "<p>"}};
  return judged;
}

// What is not ours never becomes a tag or leaves an attribute.
void expect_harmless(const std::string& page) {
  for (const char* text : {"<script", "<img", "<b>", "<i>", "<u>", "<s>"}) {
    EXPECT_EQ(page.find(text), std::string::npos) << text;
  }
}

TEST(EscapedTest, TextStandsForItself) {
  EXPECT_EQ(escaped("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

TEST(HtmlTest, EscapesWhatComesFromOutside) {
  expect_harmless(derivation_html(hostile()));
  expect_harmless(comparison_html({hostile(), hostile()}));
  expect_harmless(model_html(hostile().job->model, 128));
}

TEST(HtmlTest, FetchesNothing) {
  for (const std::string& page : {derivation_html(hand_made()), comparison_html({hand_made()})}) {
    for (const char* text : {"http://", "https://", "src=", "@import", "url("}) {
      EXPECT_EQ(page.find(text), std::string::npos) << text;
    }
    EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  }
}

TEST(HtmlTest, SaysWhatTheTextSays) {
  const std::string page = derivation_html(hand_made());
  for (const char* text : {"fits: 45.0 GB of 80.0 GB per device (56 %)", "stage 1",
                           "reduce scatter", "pp=2:1f1b dp=4:zero1", "20,000,000,000"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

// Parameters 10, optimizer 20 of 80 GB: 125 and 250 of 1000 wide, one after the other.
TEST(MemoryBarTest, PartsAreToScale) {
  const std::string svg = memory_bar(hand_made().derivation.memory[0], gigabytes(80), Bytes());
  EXPECT_NE(svg.find("c-parameters\" x=\"0.00\" y=\"0\" width=\"125.00\""), std::string::npos);
  EXPECT_NE(svg.find("c-optimizer\" x=\"125.00\" y=\"0\" width=\"250.00\""), std::string::npos);
}

// The mesh, and each instruction as often as it is written down, not as it is executed.
TEST(ProgramPageTest, ShowsTheMeshAndWhatIsWritten) {
  Program program;
  program.axes = {{.name = "pp<", .degree = 2}, {.name = "dp", .degree = 4}};
  const Step free{Instruction{.kind = InstructionKind::free}};
  const Step loop{Loop{.last = 15, .body = {free}}};
  program.classes = {{.name = "all", .body = {free, loop}}};
  const std::string page = program_html("t", program, "the text");
  for (const char* text :
       {"<td>pp&lt;</td><td class=\"r\">2</td>", "<td>dp</td><td class=\"r\">4</td>",
        "<td>free</td><td class=\"r\">2</td>", "<pre>the text</pre>"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text << "\n" << page;
  }
}

}  // namespace
}  // namespace placet
