#include "catalog/table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>

#include "units/error.h"

namespace placet {
namespace {

std::string table_message(const std::string& text) {
  try {
    parse_table(text, "t.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TableTest, ReadsQuotedCellsAndKeepsLines) {
  const Table table = parse_table(
      "row_id,model,n_gpus,own\n"
      "a,\"x, \"\"y\"\"\n second line\",8,1\n"
      "\n"
      "b,,,\n",
      "t.csv");
  EXPECT_EQ(table.kind, TableKind::runs);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.text(0, "model"), "x, \"y\"\n second line");
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[1].line, 5);  // the cell above has two lines, and one line is blank
  EXPECT_EQ(table.text(1, "n_gpus"), "");
  EXPECT_EQ(table.text(1, "no_such_column"), "");
  EXPECT_EQ(table.place(0, "n_gpus"), "t.csv: line 2 (a), column n_gpus");
}

TEST(TableTest, TakesWindowsLineEndsAndAByteOrderMark) {
  const Table table = parse_table("\xEF\xBB\xBFrow_id,dp\r\na,8\r\n", "t.csv");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.text(0, "dp"), "8");
}

TEST(TableTest, TellsKindsByTheirHeaders) {
  EXPECT_EQ(parse_table("row_id,dp,gpu_gb_derived\na,any,1\n", "t").kind, TableKind::states);
  EXPECT_EQ(parse_table("row_id,activation_gib\na,1\n", "t").kind, TableKind::activations);
}

struct Malformed {
  std::string what;
  std::string text;
  std::string message;
};

void PrintTo(const Malformed& one, std::ostream* out) { *out << one.what; }

class MalformedTableTest : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedTableTest, SaysWhereAndWhat) {
  EXPECT_EQ(table_message(GetParam().text), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, MalformedTableTest,
    ::testing::Values(
        Malformed{"nothing", "", "t.csv: the table is empty; expected a header and rows below it"},
        Malformed{"blank lines", "\n\n",
                  "t.csv: the table is empty; expected a header and rows below it"},
        Malformed{"no rows", "row_id,dp\n",
                  "t.csv: the table has a header and no rows; expected one row per run"},
        Malformed{
            "no row_id", "model,dp\nx,8\n",
            "t.csv: line 1: 'model' the header has no column row_id; expected a header in the "
            "first line, with the columns of SCHEMA.md"},
        Malformed{"misspelt column", "row_id,modle,dp\na,x,8\n",
                  "t.csv: line 1, column 2: 'modle' is not a known column; expected a column of "
                  "SCHEMA.md; own columns stand after those; did you mean 'model'?"},
        Malformed{
            "misspelt last column", "row_id,dp,micro_batchs\na,8,1\n",
            "t.csv: line 1, column 3: 'micro_batchs' is not a known column; expected a column "
            "of SCHEMA.md; own columns stand after those; did you mean 'micro_batch'?"},
        Malformed{"column given twice", "row_id,dp,dp\na,8,8\n",
                  "t.csv: line 1, column 3: 'dp' is a column given twice"},
        Malformed{"column without a name", "row_id,dp,\na,8,8\n",
                  "t.csv: line 1, column 3: the name of the column is empty; expected a column of "
                  "SCHEMA.md; own columns stand after those"},
        Malformed{"cell too many", "row_id,dp\na,8\nb,8,9\n",
                  "t.csv: line 3: '3 cells' is not what the header has; expected 2"},
        Malformed{"empty row_id", "row_id,dp\n,8\n", "t.csv: line 2: row_id is empty"},
        Malformed{"row_id given twice", "row_id,dp\na,8\na,4\n",
                  "t.csv: line 3: 'a' is the row_id of line 2 too"},
        Malformed{"quote inside a cell", "row_id,model\na,x\"y\n",
                  "t.csv: line 2, character 4: '\"' cannot stand here; expected a cell with quotes "
                  "round the whole of it or none, and quotes inside doubled"},
        Malformed{"quote that does not end", "row_id,model\na,\"x\n\nb,y\n",
                  "t.csv: line 2: a quoted cell does not end; expected a closing quote"},
        Malformed{"table of devices", "row_id,device,hbm_gb\na,x,80\n",
                  "t.csv: is a table of devices: `placet devices` lists those that are known; "
                  "expected a table of runs, of model states by formula or of saved activations, "
                  "with the columns of SCHEMA.md"},
        Malformed{"table of models", "row_id,family,params_published_b\na,x,7\n",
                  "t.csv: is a table of models: `placet model NAME` counts their parameters; "
                  "expected a table of runs, of model states by formula or of saved activations, "
                  "with the columns of SCHEMA.md"},
        Malformed{"zero byte", std::string("row_id,dp\na,\0\n", 14),
                  "t.csv: line 2: there is a zero byte"}));

struct BadCell {
  std::string text;
  std::string fault;
};

void PrintTo(const BadCell& one, std::ostream* out) { *out << one.fault; }

class BadCellTest : public ::testing::TestWithParam<BadCell> {};

// The row says what is wrong with it; the other rows stand.
TEST_P(BadCellTest, IsTheFaultOfItsRow) {
  const Table table = parse_table(GetParam().text, "t.csv");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].fault, GetParam().fault);
  EXPECT_EQ(table.rows[1].fault, "");
}

INSTANTIATE_TEST_SUITE_P(
    All, BadCellTest,
    ::testing::Values(BadCell{"row_id,dp\na,eight\nb,8\n",
                              "dp: 'eight' is not a whole number; expected a whole number from 0"},
                      BadCell{"row_id,dp\na,-8\nb,8\n",
                              "dp: '-8' is out of range; expected a whole number from 0"},
                      BadCell{"row_id,dp\na,8.5\nb,\n",
                              "dp: '8.5' is not a whole number; expected a whole number from 0"},
                      BadCell{"row_id,sp\na,2\nb,1\n",
                              "sp: '2' is out of range; expected a whole number from 0 to 1"},
                      BadCell{"row_id,peak_mem_gb\na,nan\nb,1\n",
                              "peak_mem_gb: 'nan' is out of range; expected a number"},
                      BadCell{"row_id,peak_mem_gb\na,12 GB\nb,12\n",
                              "peak_mem_gb: '12 GB' is not a number; expected a number"}));

TEST(TableTest, LimitsLinesAndColumns) {
  const std::string long_line(kLongestTableLine + 1, 'x');
  EXPECT_EQ(table_message("row_id,model\na," + long_line + "\n"),
            "t.csv: line 2: the line is too long; expected at most 1048576 bytes");
  EXPECT_EQ(table_message("row_id" + std::string(kMostTableColumns, ',') + "\n"),
            "t.csv: line 1: the row has too many cells; expected at most 1024");
}

TEST(TableTest, FolderAndMissingFileAreSaidSo) {
  const std::string here = PLACET_SOURCE_DIR;
  EXPECT_THROW(read_table(here), InputError);
  EXPECT_THROW(read_table(here + "/no_such_table.csv"), InputError);
}

TEST(TableTest, ReadsEveryTableOfTheProject) {
  const std::filesystem::path folder = PLACET_SOURCE_DIR "/data/validation/tables";
  int tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".csv" || entry.path().stem() == "models") continue;
    EXPECT_FALSE(read_table(entry.path()).rows.empty()) << entry.path();
    ++tables;
  }
  EXPECT_GE(tables, 10);
}

}  // namespace
}  // namespace placet
