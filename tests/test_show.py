"""`World.show`: a picture that a notebook shows in its place, and a script can keep."""

from collections.abc import Callable
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
import scenes
from scenes import small

from hairkit.draw.camera import Camera
from hairkit.draw.inline import overview
from hairkit.errors import FileError, WorldError
from hairkit.sim.world import World

Worlds = Callable[..., World]

pytestmark = pytest.mark.render


def test_picture_is_what_render_draws_and_a_png(world: Worlds, tmp_path: Path) -> None:
    """Show a world from a camera: pixels, inline PNG and file are the same picture."""
    made = world()
    hair = made.add_hair(small())
    camera = Camera.side(hair.groom.head)
    picture = made.show(camera, width=96, height=64)
    wanted = made.render(camera, width=96, height=64)
    assert np.array_equal(picture.image, wanted)
    assert repr(picture) == "Picture(96 x 64)"
    inline = picture._repr_png_()
    assert inline.startswith(b"\x89PNG")
    assert np.array_equal(iio.imread(inline), wanted)
    picture.save(tmp_path / "a.png")
    assert np.array_equal(iio.imread(tmp_path / "a.png"), wanted)
    with pytest.raises(FileError, match=r"\.jpg.*\.png"):
        picture.save(tmp_path / "a.jpg")


def test_picture_without_background_keeps_its_alpha(world: Worlds) -> None:
    """Show with an option of the renderer's: it arrives, and the PNG has an alpha channel."""
    made = world()
    made.add_hair(small())
    picture = made.show(width=64, height=48, background="transparent")
    assert picture.image.shape == (48, 64, 4)
    assert np.array_equal(iio.imread(picture._repr_png_()), picture.image)


def test_view_of_no_camera_has_every_head_in_it(world: Worlds) -> None:
    """Put heads far apart, one of them turned: all are in front of the camera and in its view."""
    made = world()
    hairs = [
        made.add_hair(small(), pose=scenes.pose(scenes.turning((0, 1, 0), turn), place))
        for turn, place in ((0.0, (0.0, 0.0, 0.0)), (2.0, (0.9, 0.0, 0.2)), (0.0, (0.4, 0.5, 0.0)))
    ]
    for count in (1, 3):
        camera = overview(hairs[:count])
        for hair in hairs[:count]:
            ball = hair.head_pose[:3, 3] + 0.1 * np.vstack([np.eye(3), -np.eye(3)])
            right, up, away = camera.basis() @ (ball - camera.position).T
            half = np.tan(0.5 * camera.fov)
            assert away.min() > 0.0
            # In a picture of 4 : 3, which is the usual one.
            assert np.abs(up / away).max() < half and np.abs(right / away).max() < half * 4 / 3


def test_world_without_hair_says_what_it_needs(world: Worlds) -> None:
    """Show an empty world without and with a camera: one line, and a background."""
    made = world()
    with pytest.raises(WorldError, match=r"without hair.*camera"):
        made.show()
    camera = Camera(position=(0.0, 0.0, 1.0), target=(0.0, 0.0, 0.0))
    assert made.show(camera, width=32, height=24).image.shape == (24, 32, 3)
