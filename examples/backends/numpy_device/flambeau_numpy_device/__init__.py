"""A device made of NumPy."""
