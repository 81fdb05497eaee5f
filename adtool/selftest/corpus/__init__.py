"""Right kernels that are hard to check, in the language that `engine` and Warp share."""
