// A check that an error says what it must.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace limpid {

// Expects that `act` throws an ErrorType whose message is one line that has each of the texts.
template <typename ErrorType, typename Act>
void expect_error(const Act& act, const std::vector<std::string_view>& texts) {
  try {
    act();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ErrorType& error) {
    const std::string_view message = error.what();
    EXPECT_EQ(message.find('\n'), std::string_view::npos) << message;
    for (const std::string_view text : texts)
      EXPECT_NE(message.find(text), std::string_view::npos) << text << " in: " << message;
  }
}

}  // namespace limpid
