// The device's functions for native snippets: they stand in the global namespace.
#pragma once
#define ENG_STD
