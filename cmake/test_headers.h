// What every test includes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
