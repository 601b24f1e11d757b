"""A device for flambeau whose kernels run in another process."""

__version__ = "0.1.0"
