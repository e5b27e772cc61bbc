"""The solver: guides of many heads in one arena of Taichi fields, moved by the world's clock."""
