"""Rigged hair that sways: settings, characters that wear it, budgets, bakes. No Taichi here."""
