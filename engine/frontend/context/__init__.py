"""The state of lowering one function, which all rooms of the frontend share."""
