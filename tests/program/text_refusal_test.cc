// Texts that are refused, each with its message: one place of a good program is changed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "program/samples.h"

namespace placet {
namespace {

struct Variant {
  const char* from;
  const char* to;
  const char* message;  // behind the name of the file
};

// Faults that the reader meets at a line.
const std::vector<Variant> kAtALine = {
    {"placet program 1", "placet program 2",
     ", line 2: '2' is a version of the form that is not known; expected 1"},
    {"placet program 1", "placet porgram 1",
     ", line 2: 'porgram' is not expected here; expected 'program'; did you mean 'program'?"},
    {"mesh dp=2", "mesh dp=0",
     ", line 3: '0' is out of range; expected a degree from 1 to 16777216"},
    {"mesh dp=2", "mesh dp=99999999999999999999",
     ", line 3: '99999999999999999999' is no whole number of at most 63 bits; expected a degree"},
    {"mesh dp=2", "mesh dp=2 dp=2", ", line 3: 'dp' is the name of an axis already"},
    {"micro-batches 2", "micro-batch 2",
     ", line 4: 'micro-batch' is not expected here; expected 'micro-batches'; did you mean "
     "'micro-batches'?"},
    {"dim in 3", "dim in 0",
     ", line 6: '0' is out of range; expected the extent from 1 to 281474976710656"},
    {"dim in 3", "dim in 3 chosen 4",
     ", line 6: '4' is out of range; expected how many of them are chosen from 1 to 3"},
    {"dim in 3", "dim sample 3", ", line 6: 'sample' is the name of a dim already"},
    {"dim in 3", "dmi in 3",
     ", line 6: 'dmi' is not known; expected dim, kernel, reference, buffer, procedure or class; "
     "did you mean 'dim'?"},
    {"x[s i], w[o i]) -> (y[s o])", "x[s i], w[o i]) -> (y[s o k])",
     ", line 10: 'y' has 2 dims here; expected 3"},
    {"  y[s o] = x[s i] * w[o i]", "  y[s o] = x[s i] * v[o i]",
     ", line 10: 'v' is not known; expected a tensor that comes in or was made before; did you "
     "mean 'x'?"},
    {"  y[s o] = x[s i] * w[o i]", "  y[s o] = x[s i] * w[o]",
     ", line 10: 'w' has 1 dims here; expected 2"},
    {"  y[s o] = x[s i] * w[o i]", "  y[s o] = x[s i] * w[o i]\n  y[s o] = x[s i] * w[o i]",
     ", line 11: 'y' is made twice"},
    {"  y[s o] = x[s i] * w[o i]", "  z[s o] = x[s i] * w[o i]", ", line 11: 'y' is never made"},
    {"kernel distance(", "kernel linear(", ", line 14: 'linear' is the name of a kernel already"},
    {"  i[] = inv(n[])", "  dim s like s\n  i[] = inv(n[])", ", line 26: 's' is a dim like itself"},
    {"  i[] = inv(n[])", "  i[] = inv()", ", line 26: 'inv' needs one operand"},
    {"  i[] = inv(n[])", "  i[] = inv(n[], n[])", ", line 26: 'inv' needs one operand"},
    {"  i[] = inv(n[])", "  i[] = ratio(n[])", ", line 26: 'ratio' needs 2 operands"},
    {"  i[] = inv(n[])", "  i[] = onehot(n[])",
     ", line 26: 'onehot' needs one position (\"; at\")"},
    {"  i[] = inv(n[])", "  i[] = chosen.2(n[])",
     ", line 26: 'chosen.2' chooses along one dim (\"; whole\")"},
    {"  i[] = inv(n[])", "  i[] = 1/0 * n[]", ", line 26: '0' is no denominator"},
    {"  weights weight", "  weights wieght",
     ", line 40: 'wieght' is not known; expected an input of the reference; did you mean "
     "'weight'?"},
    {"    input x[sample in]", "    input z[sample in]",
     ", line 45: 'z' is not known; expected an input of the reference; did you mean 'x'?"},
    {"    y[sample out] = linear(x, w)", "    y[sample out] = lienar(x, w)",
     ", line 48: 'lienar' is not known; expected a kernel; did you mean 'linear'?"},
    {"as \"layer.weight\"", "as \"layer.weight\" tied to w of unit 1",
     ", line 46: 'w' is of unit 1, which is not there"},
    {"  units layer", "  units layers",
     ", line 52: 'layers' is not known; expected a kind; did you mean 'layer'?"},
    {"  units layer", "  units layer 0..999999",
     ", line 53: 'choice' stands behind ranges that are too long in all; expected at most 262144"},
    {"buffer w fp32", "buffer w fp31",
     ", line 56: 'fp31' is not known; expected a format of numbers; did you mean 'fp32'?"},
    {"buffer w fp32 [out in]", "buffer w fp32 [out inn]",
     ", line 56: 'inn' is not known; expected a dim; did you mean 'in'?"},
    {"buffer w fp32 [out in]", "buffer w fp32 [out/tp in]",
     ", line 56: 'tp' is not known; expected an axis; did you mean 'dp'?"},
    {"buffer w fp32 [out in]", "buffer w fp32 [out in] / dp",
     ", line 106: 'd.w' has another number of entries than w; expected as many for '...' of "
     "'descent'"},
    {"buffer w fp32 [out in]", "buffer w[k] fp32 [out in]",
     ", line 56: 'k' is no index of a buffer; expected [u], [j] or [u j]"},
    {"buffer w fp32 [out in]", "buffer w fp32 [out in/dp]",
     ", line 106: 'd.w' has another number of entries than w; expected as many for '...' of "
     "'descent'"},
    {"  alloc y[j], l[j]", "  aloc y[j], l[j]",
     ", line 71: 'aloc' is not known; expected an instruction, a call or a buffer; did you mean "
     "'alloc'?"},
    {"  y[j] = linear(x[j], w)", "  y[j] = linear(x[j+1], w)",
     ", line 72: 'x[j+1]' is of micro-batch 2; expected from 0 to 1"},
    {"  y[j] = linear(x[j], w)", "  y[j] = linear(x, w)",
     ", line 72: 'x' has an index; expected [micro-batch]"},
    {"  y[j] = linear(x[j], w)", "  y[j] = linear(x[j], w[u])", ", line 72: 'w' has no index"},
    {"  y[j] = linear(x[j], w)", "  y[j] = linear(x[k], w)",
     ", line 72: 'k' is no index; expected u, j, u+1, j-1 or a number"},
    {"  y[j] = linear(x[j], w)", "  y[j] = linear(x[j], w, w)",
     ", line 72: 'y[j] = linear(x[j], w, w)' gives 'linear' another number of buffers; expected 2 "
     "in, 1 out"},
    {"  y[j] = linear(x[j], w)", "  y[j] = linear(x[j], count)",
     ", line 72: 'count' has 0 dims; expected 2, as 'w' of 'linear' has"},
    {"  y[j] = linear(x[j], w)", "  y[j] = linear(x[j], w; at i)",
     ", line 72: 'i' has a position that no function of 'linear' depends on"},
    {"  y[j] = linear(x[j], w)", "  y[j] = linear(x[j], w; at q)",
     ", line 72: 'q' is not known; expected s, i, o; did you mean 's'?"},
    {"  y[j] = linear(x[j], w)", "  y[j] linear(x[j], w)",
     ", line 72: 'linear' is not expected here; expected '=' or '+='"},
    {"  y[j] = linear(x[j], w)", "  y[j] = linear(x[j], w) over dp",
     ", line 72: 'over' is not said of compute"},
    {"  y[j] = linear(x[j], w)", "  y[j] = linear(x[j], w) on comunication",
     ", line 72: 'comunication' is not known; expected compute, communication, to_host, from_host; "
     "did you mean 'communication'?"},
    {"  phase backward", "  phase bakward",
     ", line 77: 'bakward' is not known; expected forward, backward, reduce, update; did you mean "
     "'backward'?"},
    {"  d.w += d.w.part[j]", "  forward-backward(u, j)",
     ", line 81: 'forward-backward' calls itself"},
    {"    forward-backward(0, j)", "    forward-bakward(0, j)",
     ", line 100: 'forward-bakward' is not known; expected a procedure; did you mean "
     "'forward-backward'?"},
    {"    forward-backward(0, j)", "    forward-backward(j)",
     ", line 100: ')' is not expected here; expected ','"},
    {"  for j in 0..1 {\n    part", "  for j in 0..2 {\n    part",
     ", line 95: 'weight[j]' is of micro-batch 2; expected from 0 to 1"},
    {"  for j in 0..1 {\n    part", "  for k in 0..2 {\n    part",
     ", line 94: 'k' is no variable; expected u or j"},
    {"  all_reduce sum count over dp", "  all_reduce sum count",
     ", line 98: 'all_reduce sum count' goes over no axis; expected over AXIS"},
    {"  all_reduce sum count over dp", "  all_reduce count over dp",
     ", line 98: 'count' is not known; expected sum, max"},
    {"  all_reduce sum count over dp", "  all_reduce sum count over micro-batch",
     ", line 98: 'all_reduce sum count over micro-batch' goes over the micro-batches, which are no "
     "devices; expected axes of the mesh"},
    {"  all_reduce sum count over dp", "  all_reduce sum count over (dp dp)",
     ", line 98: 'dp' stands twice among the axes"},
    {"  all_reduce sum count over dp", "  all_reduce sum count over dp among (0 2)",
     ", line 98: '2' is no further coordinate of the group; expected from 0 to 1 in rising order"},
    {"  all_reduce sum count over dp", "  allreduce sum count over dp",
     ", line 98: 'allreduce' is not known; expected an instruction, a call or a buffer; did you "
     "mean 'all_reduce'?"},
    {"  all_reduce sum count over dp", "  send count over dp to 2",
     ", line 98: '2' is no device of the group; expected from 0 to 1"},
    {"  all_reduce sum count over dp", "  all_gather d.w = w over dp dim 2",
     ", line 98: '2' is the number of no dim of w; expected from 0 to 1"},
    {"  all_reduce sum count over dp", "  part = count(weight[j])",
     ", line 98: 'j' has no value here; expected a number, or a loop over it"},
    {"  all_reduce sum count over dp", "  count = seed(weight[0], count)",
     ", line 98: 'count' has 0 dims; expected 1, as 'd' of 'seed' has"},
    {"  all_reduce sum count over dp", "  wait x",
     ", line 98: 'x' is no whole number of at most 63 bits; expected an event"},
    {"  all_reduce sum count over dp", "  all_reduce sum count over dp over dp",
     ", line 98: 'over' is said twice"},
    {"  all_reduce sum count over dp", "  all_reduce sum count over dp key dropout",
     ", line 98: 'key' is not said of all_reduce"},
    {"  all_reduce sum count over dp", "  copy count, part = part, count",
     ", line 98: 'copy count, part = part, count' has another number of buffers; expected one in, "
     "one out"},
    {"  all_reduce sum count over dp", "  all_reduce sum count:1 over dp",
     ", line 98: '1' is the number of no tensor of 'count'; expected from 0 to 0"},
    {"  all_reduce sum count over dp", "  slice x[0] = x[1] over dp dim 2000",
     ", line 98: '2000' is out of range; expected the position of a dim from 0 to 1024"},
    {"  all_reduce sum count over dp",
     "  count += ", ", line 99: 'for' is not known; expected a buffer"},
    {"  all_reduce sum count over dp", "  for j in 1..0 {\n    free y[j-2]\n  }",
     ", line 99: 'y[j-2]' is of micro-batch -2; expected from 0 to 1"},
    {"  all_reduce sum count over dp", "  for j in 0..1 {\n    free y[u]\n  }",
     ", line 99: 'u' has no value here; expected a number, or a loop over it"},
    {"class all {", "class all at tp=0 {",
     ", line 85: 'tp' is not known; expected an axis; did you mean 'dp'?"},
    {"holds w = parameter w of unit 0", "holds w = parameter w",
     ", line 86: 'w' does not say of which unit it is; expected of unit N"},
    {"holds w = parameter w of unit 0", "holds w = parameter v of unit 0",
     ", line 86: 'v' is not known; expected a parameter of unit 0; did you mean 'w'?"},
    {"holds w = parameter w of unit 0", "holds w = parameter w of unit 1",
     ", line 86: 'w' is of unit 1, which is not there; expected from 0 to 0"},
    {"holds w = parameter w of unit 0", "holds w = state m of w of unit 0",
     ", line 86: 'm' is not known; expected a state that the rule of 'w' keeps"},
    {"holds x[0..1] = input x", "holds x[0..1] = inptu x",
     ", line 87: 'inptu' is not known; expected parameter, state, input, zero, loss, number; did "
     "you mean "
     "'input'?"},
    {"  choice \"loss: mean over the weighted samples of the global batch\"",
     "  choice \"loss: mean", ", line 53: 'loss: mean' is text without a closing quote"},
    {"  free d.w, count, part\n}", "  free d.w, count, part\n",
     ", line 109: 'the end' is not expected here; expected '}'"},
};

// Faults of parts that are named.
const std::vector<Variant> kOfAPart = {
    {"mesh dp=2", "mesh dp=2[1,1,1]",
     ": mesh: 'dp' has 3 shares; expected one for each of its 2 coordinates"},
    {"mesh dp=2", "mesh dp=2[0,0]", ": mesh: 'dp' has shares that add up to nothing"},
    {"sum o of distance(y[s o]", "distance(y[s o]",
     ": kernel 'distance': 'o' is a dim of an operand of 'distance' that goes nowhere; expected "
     "the result has it, it is combined, or it is seen whole"},
    {"  count count\n", "", ": reference: the count of weights has no kernel"},
    {"  count count\n", "  count seed\n",
     ": reference: 'seed' takes 2 and gives 1; expected 1 and 1, as the count of weights does"},
    {"  rule descent", "  rule descent keeps m",
     ": reference: 'descent' takes 2 and gives 1; expected 3 and 2, as a rule with 1 states does"},
    {"    input x[sample in]", "    input x[sample out]",
     ": reference, kind 'layer': 'x' has other dims than the input"},
    {"    y[sample out] = linear(x, w)", "    y[sample in] = linear(x, w)",
     ": reference, kind 'layer': 'y' has 3 along in; expected 2 as others have along 'o' of "
     "'linear'"},
    {"    y[sample out] = linear(x, w)", "    y[sample out] = linear(x)",
     ": reference, kind 'layer': 'linear' is given 1 and asked for 1; expected 2 and 1"},
    {"    y[sample out] = linear(x, w)", "    y[sample out] = linear(y, w)",
     ": reference, kind 'layer': 'y' is used before it is made"},
    {"    y[sample out] = linear(x, w)", "    value q[sample]\n    y[sample out] = linear(x, w)",
     ": reference, kind 'layer': 'q' is never made; expected an input, a parameter, the stream or "
     "made by a kernel"},
    {"as \"layer.weight\"", "as \"layer.weight\" tied to w of unit 0",
     ": reference, kind 'layer': 'layer.weight' is tied to a tensor that is tied itself"},
    {"    loss l\n", "    loss l\n    out y\n",
     ": reference, units: 'layer' is the last unit and gives a stream to nobody"},
    {"buffer w fp32 [out in]", "buffer w fp32",
     ": buffer 'w': 'w' holds no tensor; expected at least one list of dims in brackets"},
    {"buffer w fp32 [out in]", "buffer w fp32 [out/dp/dp in]",
     ": buffer 'w': 'dp' stands twice among the axes"},
    {"buffer w fp32 [out in]", "buffer w fp32 [out/micro-batch in]",
     ": buffer 'w': 'w' is divided by micro-batches, but has not an element for each; expected an "
     "index [j]"},
    {"class all {", "class all at dp=0 {",
     ": classes: '1' devices have a class; expected all 2 devices of the mesh"},
    {"class all {", "class all at dp=2 {",
     ": class 'all': '2' is no further coordinate along dp; expected coordinates from 0 to 1 in "
     "rising order"},
    {"class all {", "class other at dp=1 {\n}\nclass all {",
     ": class 'all': 'all' has devices that class 'other' has already"},
    {"holds w = parameter w of unit 0", "holds w = loss",
     ": class 'all', holds w = loss: 'w' holds the loss before it is there; expected a result"},
    {"holds w = parameter w of unit 0", "holds w = zero, zero",
     ": class 'all', holds w = zero, zero: 'w' holds 1 tensors, and 2 are said"},
    {"holds w = parameter w of unit 0", "holds w = input target",
     ": class 'all', holds w = input target: 'w = input target' has other dims than the buffer; "
     "expected fp32 [out in]"},
    {"holds w = parameter w of unit 0", "holds w = zero\n  holds w = zero",
     ": class 'all', holds w = zero: 'w' stands twice"},
    {"holds x[0..1] = input x", "holds x[0..2] = input x",
     ": class 'all', holds x[2] = input x: '2' is no micro-batch; expected from 0 to 1"},
    {"  choice \"loss: mean", "  choice \"loss\001: mean",
     ": reference: a choice has characters in its text that cannot be printed; expected UTF-8 "
     "without control characters"},
};

TEST(ProgramTextRefusalTest, EveryFaultHasItsMessage) {
  const std::string good = sample_text("linear");
  ASSERT_EQ(refusal_of(good), "");
  for (const auto* table : {&kAtALine, &kOfAPart}) {
    for (const Variant& v : *table) {
      EXPECT_EQ(refusal_of(replaced(good, v.from, v.to)), std::string("text") + v.message) << v.to;
    }
  }
}

}  // namespace
}  // namespace placet
