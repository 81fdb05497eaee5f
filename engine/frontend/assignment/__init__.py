"""What an assignment does to names, structs, parts of values and array elements."""
