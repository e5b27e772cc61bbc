"""Columns of the two small tables of numbers that travel with every launch of the solver.

A step's numbers go to the device in one array a table, since every kernel argument costs
microseconds.
"""

# One row a hair. Poses are a unit quaternion (x, y, z, w) and a translation [m] relative to the
# hair's origin.
POSE_BEFORE = 0
"""Head pose at the end of the last step, 7 columns."""
POSE_NOW = 7
"""Head pose at the end of this step, 7 columns."""
WIND_BEFORE = 14
"""Wind at the end of the last step [m/s], 3 columns."""
WIND_NOW = 17
"""Wind at the end of this step [m/s], 3 columns."""
GRAVITY = 20
"""Gravity [m/s^2], 3 columns."""
TICKS = 23
"""Whole ticks of the clock in this step."""
TICK_S = 24
"""Length of a tick [s]."""
TRIAL_S = 25
"""Time from the last tick to the end of the step [s]; 0 for none."""
ALPHA_FIRST = 26
"""Where the first tick ends between the two poses, as a fraction."""
ALPHA_TICK = 27
"""What a tick adds to that fraction."""
HOLD = 28
"""Spring to the rest pose a unit mass [1/s^2]."""
DRAG = 29
"""Drag a unit mass, of the air and the style's damping, both relative to the wind [1/s]."""
STRETCH = 30
"""Spring along a segment a unit mass [1/s^2]."""
STRAIN_LOW = 31
"""Strain below which the length solve pushes a segment out (negative)."""
STRAIN_HIGH = 32
"""Strain above which the length solve pulls a segment in."""
TETHER = 33
"""Longest distance to the root, as a multiple of the length along the strand."""
ROUNDS = 34
"""Most rounds of length solve and contact, after a first contact; one is the rule."""
RADIUS = 35
"""Largest collision radius of a guide point [m]."""
BEND_DAMPING = 36
"""Time in which bending resists its own rate as much as its amount [s]."""
CONTACT_FIRST = 37
"""First row of the hair's contacts."""
CONTACT_COUNT = 38
"""How many rows of contacts it has."""
SOLID = 39
"""1 where the hair turns rigidly with the head and is not simulated."""
RESET = 40
"""1 where the hair goes back to its rest pose before this step."""
ACTIVE_COUNT = 41
"""In row 0 only: blocks to move."""
CHUNK_BLOCKS = 42
"""In row 0 only: blocks in each part of the launch."""
HAIR_COLUMNS = 43

# One row for each collider of each hair, below the hair's rows.
KIND = 0
"""Which shape, one of the codes below."""
SHAPE = 1
"""The shape's own numbers, 9 columns; what scales a grid's distances is its last."""
COLLIDER_BEFORE = 10
"""Its pose at the end of the last step, relative to the hair's origin, 7 columns."""
COLLIDER_NOW = 17
"""Its pose at the end of this step, 7 columns."""
SLOT = 24
"""Which of a point's three known distances belongs to it: 0 the body's, 1 the head's, 2 others'."""
OWNER = 25
"""A number of the collider's own: what a slot knows is true of one collider only."""
CONTACT_COLUMNS = 26

SPHERE = 0
CAPSULE = 1
BOX = 2
ELLIPSOID = 3
PLANE = 4
GRID = 5

# One row of the arena for each point.
POSITION = 0
"""Where it is [m], 3 columns, relative to the hair's origin."""
VELOCITY = 3
"""Velocity [m/s], 3 columns."""
REST = 6
"""Rest pose in the head's frame [m], 3 columns."""
CURVATURE = 9
"""Rest curvature in the frame carried along from the root [m], 3 columns."""
BEND = 12
"""Bending stiffness a unit mass of the triple round this point [1/s^2]."""
LENGTH = 13
"""Rest length of the segment from this point to the next [m]."""
VIEW = 14
"""Where the caller sees it [m], 3 columns."""
TOUCH = 17
"""Direction out of what the point touched at the end of the last tick, 3 columns; zero where
nothing."""
CARRIED = 20
"""How far that surface moved along it during the last tick [m]."""
THICKNESS = 21
"""How thick the hair is here, as a share of its hair's collision radius."""
ROW_COLUMNS = 22

KNOWN_EACH = 8
"""Columns of what one slot knows of a distance grid; see ``contact``."""
KNOWN_COLUMNS = 3 * KNOWN_EACH
