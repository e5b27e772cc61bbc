"""Paths: what comes with hairkit is found, and the cache folder can be written."""

import os
import sys
from pathlib import Path

import pytest

from hairkit import paths
from hairkit.errors import FileError


def test_styles_and_assets_are_found():
    """Find the two folders, with files in the first."""
    assert (paths.styles_dir() / "straight.toml").is_file()
    assert paths.assets_dir().is_dir()


def test_installed_package_uses_its_own_folder(tmp_path, monkeypatch):
    """Prefer the folder inside the package to one of that name beside it."""
    (tmp_path / "styles").mkdir()
    (tmp_path / "hairkit" / "styles").mkdir(parents=True)
    monkeypatch.setattr(paths, "_PACKAGE", tmp_path / "hairkit")
    assert paths.styles_dir() == tmp_path / "hairkit" / "styles"
    with pytest.raises(FileError, match="assets"):
        paths.assets_dir()


def test_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    """Make the folder that HAIRKIT_CACHE names."""
    monkeypatch.setenv("HAIRKIT_CACHE", str(tmp_path / "a" / "b"))
    assert paths.cache_dir() == tmp_path / "a" / "b"
    assert paths.cache_dir().is_dir()


def test_unusable_cache_that_was_asked_for_is_an_error(tmp_path, monkeypatch):
    """Refuse a file where HAIRKIT_CACHE should be a folder, with both named."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HAIRKIT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(FileError, match=r"HAIRKIT_CACHE=.*file"):
        paths.cache_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="XDG folders are Linux's")
def test_cache_follows_the_platform(tmp_path, monkeypatch):
    """Use XDG_CACHE_HOME when it is absolute, else ~/.cache."""
    monkeypatch.delenv("HAIRKIT_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert paths.cache_dir() == tmp_path / "xdg" / "hairkit"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert paths.cache_dir() == tmp_path / ".cache" / "hairkit"


def test_cache_falls_back_to_a_private_folder(tmp_path, monkeypatch):
    """Give a folder only this user can open when the platform's cannot be made."""
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("HAIRKIT_CACHE", raising=False)
    monkeypatch.setattr(paths, "_platform_cache", lambda: tmp_path / "file" / "hairkit")
    folder = paths.cache_dir()
    assert folder == paths.cache_dir()
    assert os.access(folder, os.W_OK)
    if sys.platform != "win32":
        assert Path(folder).stat().st_mode & 0o077 == 0
