"""What can be set in the window, what a hand does, and how sharply to draw. Plain Python."""

from dataclasses import dataclass

from hairkit.style import Style

DROOP = (0.005, 1.0)
"""Ends of the slider of droop [m]; a style's own may lie beyond."""

SHRINKAGE = (0.0, 0.9)
"""Ends of the slider of shrinkage."""

FASTEST_WIND = 10.0
"""End of the slider of wind [m/s]."""

DETAIL = (0.05, 1.0)
"""Ends of the slider of hair detail."""

KEYS = {
    "Left": "previous style",
    "Right": "next style",
    "m": "next motion",
    "c": "camera",
    "p": "screenshot",
    "r": "record",
    "Tab": "panel",
    "Escape": "quit",
}
"""What a key asks for; keys by GGUI's names."""


@dataclass
class Controls:
    """What the panel's sliders say."""

    style: int = 0
    """Which of the styles."""

    motion: str = "still"
    """How the head moves, one of `hairkit.motions.motion_names()`."""

    wind: float = 0.0
    """Speed of the wind [m/s]."""

    gust: float = 0.3
    """How much of the wind comes and goes, 0..1."""

    hold: float = 0.0
    """How strongly hair keeps its style, 0..1."""

    droop: float = 0.06
    """Distance over which the rest pose turns to the ground [m]; hair is grown again for it."""

    shrinkage: float = 0.0
    """Share of its length that coiled hair loses at rest; hair is grown again for it."""

    physics: float = 1.0
    """How freely hair moves: 1 natural, 0 solid."""

    detail: float = 1.0
    """Share of the drawn hairs, above 0 up to 1."""

    def take(self, style: Style) -> None:
        """Set what a style sets."""
        self.hold, self.droop, self.shrinkage = style.hold, style.droop, style.shrinkage

    def growth(self) -> tuple[int, float, float]:
        """Return what hair has to be grown again for."""
        return self.style, self.droop, self.shrinkage


@dataclass(frozen=True)
class Hands:
    """What keys and mouse do in a frame."""

    keys: tuple[str, ...] = ()
    """Keys that went down, by GGUI's names."""

    pointer: tuple[float, float] = (0.5, 0.5)
    """Where the pointer is, from the left and from the bottom, 0..1."""

    left: bool = False
    """Whether the left button is down."""

    right: bool = False
    """Whether the right button is down."""

    shift: bool = False
    """Whether a shift key is down."""

    nearer: bool = False
    """Whether the key is down that goes nearer."""

    farther: bool = False
    """Whether the key is down that goes away."""


class Meter:
    """A time that does not flicker on the screen."""

    def __init__(self) -> None:
        self.ms = 0.0
        """The time, smoothed [ms]."""

    def note(self, seconds: float) -> None:
        """Take a measurement [s]."""
        ms = 1e3 * seconds
        self.ms = ms if self.ms == 0.0 else self.ms + 0.15 * (ms - self.ms)


@dataclass(frozen=True)
class Sharpness:
    """How much of a picture is drawn."""

    size: float
    """Share of the window's width and height."""

    detail: float
    """Share of the hairs that the slider asks for."""


class Pace:
    """Chooses how sharply to draw while something moves: whatever is there in time."""

    LEVELS = (
        Sharpness(1.0, 1.0),
        Sharpness(0.5, 1.0),
        Sharpness(0.5, 0.5),
        Sharpness(0.4, 0.25),
    )
    """From sharp to quick; from one to the next takes up to twice as long. Fewer samples a pixel
    would be quicker too, but break hairs into dots."""

    FULL = LEVELS[0]

    BUDGET_S = 0.05
    """Time that a picture may take [s]."""

    def __init__(self, level: int = 0) -> None:
        """Start at a level."""
        self._level = level
        self._fresh = True

    @property
    def sharpness(self) -> Sharpness:
        """How sharply to draw the next picture."""
        return self.LEVELS[self._level]

    def note(self, seconds: float) -> None:
        """Take note of how long a picture of that sharpness took [s]."""
        if self._fresh:
            # The first one lays out its hairs, and may compile.
            self._fresh = False
            return
        before = self._level
        if seconds > self.BUDGET_S:
            self._level = min(before + 1, len(self.LEVELS) - 1)
        elif seconds < 0.4 * self.BUDGET_S:
            self._level = max(before - 1, 0)
        self._fresh = self._level != before
