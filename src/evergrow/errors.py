"""What Evergrow raises beyond Python's own and scikit-learn's errors."""

__all__ = ["ModelFileError"]


class ModelFileError(ValueError):
    """A model file is damaged, hostile, not ours, or from a newer version."""
