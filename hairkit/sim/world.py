"""The world: heads of hair, wind, colliders and a clock of its own."""

import math
import queue
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit.backend import open_session
from hairkit.errors import WorldError
from hairkit.groom import Groom
from hairkit.sim import columns as col
from hairkit.sim import kernels
from hairkit.sim.chains import Chains, chain_groom, pendulum
from hairkit.sim.checks import check_pose, number, vector
from hairkit.sim.colliders import Collider, as_shape, shape_row
from hairkit.sim.engine import Engine
from hairkit.sim.grids import give_grid, take_grid
from hairkit.sim.hair import Hair
from hairkit.sim.layout import pack
from hairkit.sim.stats import Stats, measure
from hairkit.sway.settings import ChainSettings

LONGEST_STEP_S = 1.0


Kind = TypeVar("Kind", bound=Hair)


class World(Engine):
    """Heads of hair that move together, on a fixed clock.

    The solver is a discrete elastic rod a strand, stepped implicitly; see ``hairkit.sim.kernels``.
    Its clock is the world's own: ``step(dt)`` feeds it, and what it does not fill a whole tick is
    simulated on trial to the time asked for and taken back, so every caller gets the same motion.
    The head is where ``set_head`` says at every returned time. Lengths are kept to 0.2 % where
    motion allows; ``hold``, bending and sag are material properties and depend on neither clock,
    damping nor point count.

    It does not do: strands against strands or cloth; contact between guide points (a segment can
    cut a sharp edge); friction (hair slides).
    """

    def __init__(
        self,
        backend: str | None = None,
        *,
        max_points: int = 2**17,
        clock: float = 1.0 / 120.0,
        threads: int | None = None,
    ) -> None:
        """Open Taichi's runtime, or join the one that is open; compiles nothing.

        Args:
            backend: ``cpu``, ``cuda``, ``vulkan`` or ``auto``; by default the environment's
                ``HAIRKIT_BACKEND``, else ``auto``.
            max_points: Guide points there is room for before the arena grows, rounded up to a power
                of two.
            clock: Time between two ticks [s], 1e-4 to 1/30.
            threads: CPU threads; by default all cores.

        Raises:
            BackendError: The backend does not work here; the message says why.
            WorldError: ``clock`` or ``max_points`` is out of range.
        """
        if not 1e-4 <= clock <= 1.0 / 30.0:
            raise WorldError(f"clock {clock!r}: expected 0.0001 to 0.0333 s")
        if threads is not None and not 1 <= threads <= 1024:
            raise WorldError(f"threads {threads!r}: expected 1 to 1024")
        super().__init__(open_session(backend, threads=threads), max_points)
        self.clock = clock
        self.sleep = True
        """Whether hair at rest may sleep."""
        self._resets_before = 0
        self._slow_warned = False
        self._posted: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._renderer: Any = None

    @property
    def backend(self) -> str:
        """The backend it runs on."""
        return self.session.name

    @property
    def wind(self) -> NDArray[np.float64]:
        """Wind [m/s], shape (3,)."""
        return self._wind.copy()

    @wind.setter
    def wind(self, value: ArrayLike) -> None:
        self._wind = vector("wind", value, 200.0)
        self._air_changed = True

    @property
    def gust(self) -> float:
        """How gusty the wind is: at 1 it varies between nothing and twice itself."""
        return self._gust

    @gust.setter
    def gust(self, value: float) -> None:
        if not 0.0 <= float(value) <= 1.0:
            raise WorldError(f"gust {value!r}: expected 0 to 1")
        self._gust = float(value)
        self._air_changed = True

    @property
    def gravity(self) -> NDArray[np.float64]:
        """Gravity [m/s^2], shape (3,)."""
        return self._gravity.copy()

    @gravity.setter
    def gravity(self, value: ArrayLike) -> None:
        self._gravity = vector("gravity", value, 1000.0)
        self._air_changed = True

    @property
    def resets(self) -> int:
        """How often a strand or a head's pose went bad and hair was put back into its rest pose."""
        self.session.check()
        total = self._resets_before + sum(h._host_resets for h in self._moving)
        if self._moving:
            device = self.arena.hair_resets.to_numpy()
            total += int(sum(device[h.index] for h in self._moving))
        return total

    def add_hair(
        self, groom: Groom, *, pose: ArrayLike | None = None, wind: float = 1.0, motion: float = 1.0
    ) -> Hair:
        """Put a groom on a head in the world, in its rest pose.

        Args:
            groom: What ``grow`` made.
            pose: Where the head is, shape (4, 4); by default the identity. Neck and shoulders stand
                there too.
            wind: Share of the world's wind that reaches it.
            motion: 1 natural to 0 solid.

        Returns:
            The hair, to be moved by ``set_head``.

        Raises:
            GroomError: A strand has fewer than 3 points or no length.
            WorldError: The pose is not a rotation and a translation.
        """
        self.session.check()
        matrix = check_pose(np.eye(4) if pose is None else pose, "head pose")
        if matrix is None:
            raise WorldError("head pose: expected finite numbers below 1e7 m")
        hair = self._insert(Hair, groom, matrix)
        hair.wind = wind
        hair.motion = motion
        head = groom.head
        for shape, follows in ((head.body_shape, False), (head.head_shape, True)):
            if shape is not None:
                first = take_grid(self.session, shape)
                hair.shapes.append((shape, shape_row(shape, first), follows))
        self.hairs.append(hair)
        self._begin(hair)
        return hair

    def add_chains(
        self,
        rigged: Any,
        settings: ChainSettings | None = None,
        *,
        pose: ArrayLike | None = None,
    ) -> Chains:
        """Let a rigged hair's bone chains sway.

        Args:
            rigged: A `RiggedHair`, or anything with its `plan` and `into_scene`.
            settings: How they move; None is the usual way.
            pose: The transform, into the world, of the node that carries the hair, shape (4, 4),
                scale and mirroring included; None is where the file has it.

        Returns:
            The chains, to be moved by ``set_pose``.

        Raises:
            WorldError: The transform is not finite or flat, or the chains have no length.
        """
        self.session.check()
        start = np.asarray(rigged.into_scene if pose is None else pose, dtype=np.float64)
        groom = chain_groom(rigged, start, settings or ChainSettings())
        chains = self._insert(Chains, groom, groom.rigid(start))
        self.chains.append(chains)
        self._begin(chains)
        return chains

    def add_pendulum(
        self,
        length: float,
        settings: ChainSettings | None = None,
        *,
        pose: ArrayLike | None = None,
        down: ArrayLike = (0.0, -1.0, 0.0),
    ) -> Chains:
        """Let something that has no bones swing rigidly from where it is fixed.

        Args:
            length: From there to its far end, in the space of `pose`.
            settings: How it moves.
            pose: The transform of its space into the world, shape (4, 4); its origin is where it
                is fixed. None is the identity.
            down: Direction in which it hangs at rest, in its space.

        Returns:
            One chain of one bone.
        """
        start = np.eye(4) if pose is None else pose
        return self.add_chains(pendulum(length, down), settings, pose=start)

    def most_chains(self, milliseconds: float = 2.0) -> int:
        """Return how many chains, worn three to a head, this device moves in a step.

        Measured once for the session, in a tenth of a second or so; what a budget of ``auto`` goes
        by.

        Args:
            milliseconds: That a step may take, joints read, above 0.

        Raises:
            WorldError: It may take no time.
        """
        from hairkit.sim.chain_measure import most_chains

        return most_chains(self, number("milliseconds", milliseconds, 1e-3, 1e6))

    def _insert(self, kind: type[Kind], groom: Any, pose: NDArray[np.float64]) -> Kind:
        """Give hair its rows and write what does not change."""
        arena = self.arena
        layout = pack(groom, lanes=arena.lanes, stride=arena.stride)
        longest = int(layout.blocks[:, 1].max())
        if longest > arena.longest:
            raise WorldError(f"a strand of {longest} points: expected at most {arena.longest}")
        wanted = {
            "row": layout.row_count,
            "block": len(layout.blocks),
            "strand": len(groom.counts),
            "point": len(groom.points),
            "hair": 1,
        }
        rows = self._take(wanted)
        arena = self.arena
        hair = kind(self, groom, pose, layout, rows)
        kernels.load_hair(
            layout.row_count,
            rows["row"],
            rows["block"],
            len(layout.blocks),
            rows["hair"],
            layout.rows,
            layout.frames,
            layout.blocks,
            arena,
        )
        table = np.stack(
            [
                layout.strand_row + rows["row"],
                layout.strand_lane,
                layout.strand_start + rows["point"],
                np.asarray(groom.counts, np.int32),
                layout.strand_rigid,
            ],
            axis=1,
        ).astype(np.int32)
        kernels.load_strands(len(table), rows["strand"], rows["hair"], table, arena)
        return hair

    def _begin(self, hair: Hair) -> None:
        """Put new hair into its rest pose."""
        self._write_hair(hair)
        hair.write_step(self._numbers, self.clock, self.clock)
        hair._phase = 0.0
        self._numbers[hair.index, [col.TICKS, col.TRIAL_S]] = 0.0
        self._numbers[hair.index, col.RESET] = 1.0
        self.active_changed = True
        self._contacts_changed = True
        self._refresh()
        self._launch(force=[hair])
        self._numbers[hair.index, col.RESET] = 0.0

    def remove(self, thing: Hair | Collider) -> None:
        """Take hair, chains or a collider out of the world; its rows are free for the next.

        Raises:
            WorldError: It is not in this world.
        """
        self.session.check()
        if isinstance(thing, Hair):
            if thing not in self._moving:
                raise WorldError("remove: this hair is not in this world")
            self._resets_before += thing._host_resets
            self._resets_before += int(self.arena.hair_resets[thing.index])
            if isinstance(thing, Chains):
                self.chains.remove(thing)
            else:
                self.hairs.remove(thing)
            spaces = self._spaces()
            counts = {
                "row": thing.row_count,
                "block": thing.block_count,
                "strand": thing.strand_count,
                "point": len(thing.groom.points),
                "hair": 1,
            }
            for name, count in counts.items():
                spaces[name].give(thing._rows[name], count)
            for shape, _, _ in thing.shapes:
                give_grid(self.session, shape)
        else:
            if thing not in self.colliders:
                raise WorldError("remove: this collider is not in this world")
            self.colliders.remove(thing)
            give_grid(self.session, thing.shape)
            self._wake()
        self.active_changed = True
        self._contacts_changed = True

    def add_collider(self, shape: Any, *, pose: ArrayLike | None = None) -> Collider:
        """Put something into the world that all hair is kept out of.

        Args:
            shape: A shape of ``hairkit.shapes``, or a mesh (anything with vertices and faces),
                which becomes a grid of signed distances.
            pose: Its frame to the world's, shape (4, 4); by default the identity.

        Returns:
            The collider; ``.set_pose`` moves it.

        Raises:
            WorldError: The shape is not known, or the pose is not a rotation and a translation.
        """
        self.session.check()
        matrix = check_pose(np.eye(4) if pose is None else pose, "collider pose")
        if matrix is None:
            raise WorldError("collider pose: expected finite numbers below 1e7 m")
        solid = as_shape(shape)
        shape_row(solid, 0)
        collider = Collider(solid, matrix, take_grid(self.session, solid))
        self.colliders.append(collider)
        self._contacts_changed = True
        self._wake()
        return collider

    def post(self, work: Callable[[], Any]) -> None:
        """Hand work over from any thread; the owner runs it at the start of the next step."""
        self._posted.put(work)

    def step(self, dt: float) -> None:
        """Move on by dt seconds of simulated time.

        Args:
            dt: Time since the last step [s], over 0. A step over 1 s is cut to 1 s: a stalled
                caller sees time slow down instead of waiting.

        Raises:
            WorldError: dt is 0, negative or not a number.
            SessionError: The runtime was closed, or another thread owns it.
        """
        self.session.check()
        try:
            dt = float(dt)
        except (TypeError, ValueError):
            raise WorldError(f"dt {dt!r}: expected seconds over 0") from None
        if not (math.isfinite(dt) and dt > 0.0):
            raise WorldError(f"dt {dt:g}: expected seconds over 0")
        if dt > LONGEST_STEP_S:
            if not self._slow_warned:
                warnings.warn(f"a step of {dt:g} s is cut to {LONGEST_STEP_S:g} s", stacklevel=2)
                self._slow_warned = True
            dt = LONGEST_STEP_S
        while not self._posted.empty():
            self._posted.get()()
        moving = self._moving
        for hair in moving:
            if hair.far():
                self._rebase(hair)
            hair.write_step(self._numbers, dt, self.clock)
        self.time += dt
        self._write_air()
        self._refresh()
        self._launch()
        used = self._used
        numbers = self._numbers[:used]
        numbers[:, col.POSE_BEFORE : col.POSE_BEFORE + 7] = numbers[
            :, col.POSE_NOW : col.POSE_NOW + 7
        ]
        numbers[:, col.WIND_BEFORE : col.WIND_BEFORE + 3] = numbers[
            :, col.WIND_NOW : col.WIND_NOW + 3
        ]
        self._contacts[:, col.COLLIDER_BEFORE : col.COLLIDER_BEFORE + 7] = self._contacts[
            :, col.COLLIDER_NOW : col.COLLIDER_NOW + 7
        ]
        self.steps += 1
        for hair in moving:
            hair.after_step(dt)
            if self.sleep:
                self._try_sleep(hair)
            elif hair.sleeping:
                hair.wake()

    def read(self, hair: Hair) -> NDArray[np.float64]:
        """Return a hair's points in the world [m]; ``Hair.points`` is the usual way."""
        self.session.check()
        points = np.zeros((len(hair.groom.points), 3), np.float32)
        kernels.read_points(
            hair.strand_count,
            hair.strand_first,
            hair._rows["point"],
            self._table,
            self.arena,
            points,
        )
        return points.astype(np.float64) + hair.origin

    def present(self) -> None:
        """Fill the arena's ``guide_point`` for drawing, on the device."""
        self.session.check()
        for hair in self.hairs:
            kernels.present(hair.strand_count, hair.strand_first, self._table, self.arena)

    def render(self, camera: Any, *, width: int = 960, height: int = 720, **options: Any) -> Any:
        """Draw the world as it is now.

        Args:
            camera: Where from, a ``hairkit.Camera``.
            width: Picture width [pixels].
            height: Picture height [pixels].
            options: See ``hairkit.draw.Renderer.image``.

        Returns:
            The picture, sRGB, shape (height, width, 3 or 4), uint8.
        """
        return self.drawing().image(camera, width=width, height=height, **options)

    def show(self, camera: Any = None, **options: Any) -> Any:
        """Return the picture as a notebook shows it; no camera sees all heads. See `render`."""
        from hairkit.draw.inline import show

        return show(self, camera, **options)

    def drawing(self) -> Any:
        """Return what draws this world, made when it is first asked for."""
        self.session.check()
        if self._renderer is None:
            from hairkit.draw import Renderer

            self._renderer = Renderer(self)
        return self._renderer

    def stats(self) -> Stats:
        """Return how well it does now; reads all points back, so not for every step of a game."""
        return measure(self)

    def close(self) -> None:
        """Take everything out of the world; the runtime stays open for the next."""
        for hair in self._moving:
            self.remove(hair)
        for collider in list(self.colliders):
            self.remove(collider)
        self._renderer = None
