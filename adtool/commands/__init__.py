"""The commands, one file each: parse options, call the library, render the result."""
