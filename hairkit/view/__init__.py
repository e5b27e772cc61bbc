"""The catalogue in a window: styles on one head, a camera to turn, and sliders. Needs Vulkan.

`Orbit`, `Laps` and `Controls` are plain NumPy and Python; `Stage` is the world and its picture;
`Desk` is the window, and the only place that names GGUI; `run` makes frames of all of them.
"""
