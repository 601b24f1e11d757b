#pragma once
#include <flambeau/extension.h>
