"""The derivative that adjoints are compared with: by differences, with its own error."""
