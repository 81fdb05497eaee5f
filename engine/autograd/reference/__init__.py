"""Reference derivatives by differences, with an estimate of their error."""
