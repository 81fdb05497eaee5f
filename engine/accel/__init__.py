"""What makes launches, passes and captured graphs fast; nothing that they need to be right."""
