// The look of pages: light and dark, on screens of any width and on paper.
#pragma once

#include <string_view>

namespace placet {

/// The style sheet, as text between <style> and </style>.
std::string_view page_style();

}  // namespace placet
