"""Reverse-mode differentiation over the operators."""
