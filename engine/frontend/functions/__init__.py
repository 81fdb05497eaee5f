"""What `@func` and its kin make, as data, and which overload a call means."""
