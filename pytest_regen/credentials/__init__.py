"""What credentials look like and are called, and text without them. Standard library only."""
