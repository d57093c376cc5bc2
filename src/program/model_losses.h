// What a model is trained on: the kernels of its losses. Inside of model_operators.cc.
#pragma once

#include <vector>

#include "program/kind_builder.h"

namespace placet {

/// Inputs of the step that only the ends of the model take: the tokens that follow, and those after
/// them.
constexpr int kLabels = 1, kNextLabels = 3;

/// Cross entropy: the largest logit, the sum of exponentials and the logit of the label, the
/// loss of each token.
void add_loss(KindBuilder& unit, const Operator& op);

/// How evenly tokens, of a sample or of all, are spread over the experts: the sum over experts of
/// their load times what the token would give them. The load, how many tokens choose an expert,
/// does not change with small changes of the scores. Of what a token gives nothing is assumed, nor
/// of the loss's weight (Fedus et al. 2022, arXiv 2101.03961, section 2.2; of each sample by
/// itself: arXiv 2412.19437, section 2.1.2). `inputs`: scores and what is added to them for the
/// choice.
void add_balance_loss(KindBuilder& unit, const std::vector<int>& inputs);

}  // namespace placet
