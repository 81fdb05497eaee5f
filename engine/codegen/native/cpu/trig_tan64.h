// Functions of vectors there are none yet.
#pragma once
