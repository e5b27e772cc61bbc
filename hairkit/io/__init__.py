"""Files: one module a format. NumPy only; nothing here loads Taichi."""
