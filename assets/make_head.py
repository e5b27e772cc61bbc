"""Make head.glb, the head that hairkit comes with, from formulas alone.

    python assets/make_head.py [OUT.glb]

A calm mannequin: balls, ellipsoids and tapered capsules, blended smoothly, sampled on a grid,
meshed by marching cubes and thinned out where it is flat. Metres, +Y up, +Z front. The mesh is
dedicated to the public domain (CC0 1.0).
"""

import sys
from pathlib import Path

import igl
import numpy as np
import trimesh
from numpy.typing import NDArray

Array = NDArray[np.float64]

TRIANGLES = 14_000
CELL = 0.0025
LOW, HIGH = np.array([0.0, -0.195, -0.165]), np.array([0.245, 0.24, 0.135])
FACE, FACE_RADIUS = np.array([0.0, 0.085, 0.085]), 0.055
SKIN, LIPS, BLUSH = (222, 184, 160), (188, 118, 108), (219, 164, 144)


def ellipsoid(p: Array, center: tuple, radii: tuple, tilt: float = 0.0) -> Array:
    """Return the distance to an ellipsoid, first order, tilted forwards about x [rad]."""
    q = p - center
    if tilt:
        c, s = np.cos(tilt), np.sin(tilt)
        q = np.stack([q[:, 0], c * q[:, 1] + s * q[:, 2], c * q[:, 2] - s * q[:, 1]], axis=1)
    k0 = np.linalg.norm(q / radii, axis=1)
    k1 = np.linalg.norm(q / np.square(radii), axis=1)
    return k0 * (k0 - 1.0) / np.maximum(k1, 1e-9)


def cone(p: Array, a: tuple, b: tuple, ra: float, rb: float, squash: tuple = (1, 1, 1)) -> Array:
    """Return the distance to a capsule whose radius goes from ``ra`` at a to ``rb`` at b."""
    p, a, b = p / squash, np.divide(a, squash), np.divide(b, squash)
    t = np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
    return np.linalg.norm(p - a - t[:, None] * (b - a), axis=1) - (ra + (rb - ra) * t)


def join(a: Array, b: Array, k: float) -> Array:
    """Return the union of two solids with a fillet about ``k`` wide."""
    h = np.maximum(k - np.abs(a - b), 0.0) / k
    return np.minimum(a, b) - h * h * h * k / 6.0


def carve(a: Array, b: Array, k: float) -> Array:
    """Return the solid a without b, its edge rounded."""
    return -join(-a, b, k)


def solid(points: Array) -> Array:
    """Return the signed distance to the head [m], nearly; shape (n,)."""
    p = points.copy()
    p[:, 0] = np.abs(p[:, 0])  # a face is symmetric
    # Skull.
    d = ellipsoid(p, (0, 0.146, -0.014), (0.0765, 0.083, 0.0945))
    d = join(d, ellipsoid(p, (0, 0.135, 0.030), (0.066, 0.070, 0.060)), 0.03)
    # Face and jaw.
    d = join(d, ellipsoid(p, (0, 0.088, 0.032), (0.062, 0.080, 0.0565)), 0.02)
    d = join(d, ellipsoid(p, (0, 0.066, 0.012), (0.061, 0.042, 0.050)), 0.03)
    d = join(d, cone(p, (0.043, 0.053, 0.006), (0.008, 0.018, 0.064), 0.011, 0.015), 0.035)
    d = join(d, ellipsoid(p, (0, 0.017, 0.073), (0.015, 0.014, 0.0145)), 0.025)
    d = join(d, ellipsoid(p, (0.042, 0.088, 0.056), (0.020, 0.017, 0.021)), 0.03)
    # Neck and shoulders.
    d = join(d, cone(p, (0, 0.09, -0.026), (0, -0.08, -0.046), 0.046, 0.051, (1, 1, 1.06)), 0.025)
    torso = ellipsoid(p, (0, -0.205, -0.042), (0.165, 0.148, 0.090))
    torso = join(torso, cone(p, (0.05, -0.06, -0.058), (0.160, -0.118, -0.052), 0.028, 0.048), 0.08)
    torso = join(
        torso, cone(p, (0.160, -0.118, -0.052), (0.184, -0.26, -0.056), 0.048, 0.040), 0.06
    )
    trapezius = cone(p, (0.020, 0.0, -0.060), (0.090, -0.088, -0.062), 0.022, 0.022)
    d = join(d, join(torso, trapezius, 0.05), 0.04)
    d = join(d, cone(p, (0.014, -0.080, 0.002), (0.120, -0.073, -0.030), 0.006, 0.006), 0.035)
    d = join(d, cone(p, (0.046, 0.055, -0.020), (0.010, -0.074, 0.000), 0.009, 0.007), 0.035)
    # Brow, sockets, closed eyes.
    d = join(d, cone(p, (0.010, 0.131, 0.0815), (0.042, 0.136, 0.065), 0.009, 0.008), 0.022)
    d = carve(d, ellipsoid(p, (0.0325, 0.117, 0.0985), (0.0185, 0.0105, 0.0155)), 0.018)
    d = join(d, ellipsoid(p, (0.0315, 0.1145, 0.0715), (0.0155, 0.0120, 0.0140)), 0.005)
    lash = cone(p, (0.0190, 0.1105, 0.0815), (0.0315, 0.1080, 0.0868), 0.0012, 0.0014)
    lash = np.minimum(
        lash, cone(p, (0.0315, 0.108, 0.0868), (0.0450, 0.1115, 0.078), 0.0014, 0.0012)
    )
    d = carve(d, lash, 0.003)
    # Nose.
    d = join(d, cone(p, (0, 0.124, 0.085), (0, 0.088, 0.1060), 0.0065, 0.0080), 0.014)
    d = join(d, ellipsoid(p, (0, 0.088, 0.092), (0.0115, 0.0190, 0.0150)), 0.012)
    d = join(d, ellipsoid(p, (0, 0.0820, 0.1055), (0.0100, 0.0090, 0.0100)), 0.010)
    d = join(d, ellipsoid(p, (0.0105, 0.0785, 0.0965), (0.0065, 0.0070, 0.0095)), 0.010)
    d = carve(d, ellipsoid(p, (0.0062, 0.0715, 0.100), (0.0030, 0.0035, 0.0045)), 0.005)
    # Mouth.
    d = join(d, ellipsoid(p, (0, 0.053, 0.077), (0.025, 0.019, 0.0155)), 0.022)
    upper = cone(p, (0.0035, 0.0562, 0.0915), (0.0205, 0.0518, 0.0815), 0.0042, 0.0020)
    lower = cone(p, (0, 0.0468, 0.0900), (0.0185, 0.0506, 0.0815), 0.0058, 0.0022)
    d = join(d, upper, 0.007)
    d = join(d, lower, 0.007)
    gap = cone(p, (0, 0.0518, 0.0968), (0.0120, 0.0522, 0.0928), 0.0017, 0.0015)
    gap = np.minimum(
        gap, cone(p, (0.012, 0.0522, 0.0928), (0.0215, 0.0514, 0.0862), 0.0015, 0.0010)
    )
    d = carve(d, gap, 0.003)
    d = carve(d, cone(p, (0, 0.062, 0.0995), (0, 0.070, 0.0995), 0.0024, 0.0016), 0.006)
    # Ears: a tilted shell, hollowed, with a lobe.
    turn = np.array([[0.93, 0.0, 0.37], [0.0, 1.0, 0.0], [-0.37, 0.0, 0.93]])
    q = (p - (0.0755, 0.112, -0.014)) @ turn.T
    ear = ellipsoid(q, (0, 0.004, 0), (0.0075, 0.0295, 0.0175), -0.22)
    ear = join(ear, ellipsoid(q, (-0.001, -0.020, 0.004), (0.0055, 0.012, 0.0095)), 0.008)
    ear = carve(ear, ellipsoid(q, (0.009, 0.0075, 0.002), (0.0078, 0.0215, 0.0105), -0.22), 0.004)
    ear = carve(ear, ellipsoid(q, (0.007, -0.005, 0.005), (0.0095, 0.0105, 0.0080)), 0.004)
    ear = join(ear, ellipsoid(q, (0.000, -0.004, 0.0150), (0.0050, 0.0070, 0.0045)), 0.006)
    d = join(d, ear, 0.007)
    # A flat foot, so that the bust stands.
    return carve(d, p[:, 1] + 0.185, 0.012)


def gradient(points: Array) -> Array:
    """Return unit normals of the solid at points."""
    step = 4e-4
    slope = np.stack(
        [solid(points + step * e) - solid(points - step * e) for e in np.eye(3)], axis=1
    )
    return slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-12)


def colors(points: Array) -> NDArray[np.uint8]:
    """Return the sRGB colour of each vertex: skin, redder lips, cheeks and ears."""
    x, y, z = np.abs(points[:, 0]), points[:, 1], points[:, 2]
    color = np.tile(np.array(SKIN, float), (len(points), 1))

    def mix(weight: Array, target: tuple) -> None:
        color[:] += np.clip(weight, 0.0, 1.0)[:, None] * (np.array(target, float) - color)

    mix(
        0.55 * np.exp(-(((x - 0.045) / 0.02) ** 2) - ((y - 0.082) / 0.02) ** 2 - (z < 0.02) * 9),
        BLUSH,
    )
    mix(0.5 * np.exp(-((x / 0.014) ** 2) - ((y - 0.082) / 0.014) ** 2) * (z > 0.095), BLUSH)
    mouth = np.exp(-((x / 0.0225) ** 6) - ((y - 0.0515) / (0.0092 - 0.10 * x)) ** 6)
    mix(mouth * (z > 0.075), LIPS)
    mix(0.5 * np.exp(-(((x - 0.083) / 0.010) ** 2) - ((y - 0.11) / 0.03) ** 2), BLUSH)
    return np.clip(np.rint(color), 0, 255).astype(np.uint8)


def blown_up(points: Array) -> Array:
    """Return points with the face three times as large, fading out around it."""
    offset = points - FACE
    r2 = np.sum(offset * offset, axis=1, keepdims=True)
    return FACE + offset * (1.0 + 2.0 * np.exp(-r2 / FACE_RADIUS**2))


def shrunk(points: Array) -> Array:
    """Return the inverse of ``blown_up``, which moves each point along its ray from the face."""
    low, high = np.zeros((len(points), 1)), np.ones((len(points), 1))
    for _ in range(50):
        share = 0.5 * (low + high)
        beyond = np.linalg.norm(blown_up(FACE + (points - FACE) * share) - FACE, axis=1)
        beyond = (beyond > np.linalg.norm(points - FACE, axis=1))[:, None]
        low, high = np.where(beyond, low, share), np.where(beyond, share, high)
    return FACE + (points - FACE) * low


def onto_surface(vertices: Array, faces: NDArray[np.int64], rim: NDArray[np.int64]) -> None:
    """Move vertices back onto the surface, where thinning left it, and flatten folds; in place."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges = np.concatenate([edges, edges[:, ::-1]])
    degree = np.bincount(edges[:, 0], minlength=len(vertices))[:, None]
    for _ in range(30):
        for _ in range(3):
            vertices -= gradient(vertices) * np.clip(solid(vertices), -1e-3, 1e-3)[:, None]
            vertices[rim, 0] = 0.0
        a, b, c = (vertices[faces[:, i]] for i in range(3))
        normal = np.cross(b - a, c - a)
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-15)
        agree = np.min([np.sum(normal * gradient(v), axis=1) for v in (a, b, c)], axis=0)
        folded = np.unique(faces[agree < 0.4])
        if len(folded) == 0:
            break
        mean = np.zeros_like(vertices)
        np.add.at(mean, edges[:, 0], vertices[edges[:, 1]])
        vertices[folded] += 0.5 * (mean / degree - vertices)[folded]
        vertices[rim, 0] = 0.0


def make_head() -> trimesh.Trimesh:
    """Return the mesh."""
    counts = np.ceil((HIGH - LOW) / CELL).astype(int) + 1
    axes = [LOW[i] + np.arange(counts[i]) * CELL for i in range(3)]
    z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
    grid = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    values = np.concatenate([solid(part) for part in np.array_split(grid, 64)])
    vertices, faces, _ = igl.marching_cubes(values, grid, *(int(n) for n in counts), 0.0)
    # Thinning keeps what is large: the face is blown up meanwhile, so that lips and lids survive.
    vertices, faces, *_ = igl.qslim(
        np.asfortranarray(blown_up(vertices)),
        np.asfortranarray(faces, dtype=np.int32),
        TRIANGLES // 2,
    )
    vertices, faces = shrunk(np.array(vertices)), np.array(faces)
    rim = np.unique(igl.boundary_facets(faces)[0])
    onto_surface(vertices, faces, rim)
    # A triangle that lies in the mirror's plane would meet its own image.
    faces = faces[~np.isin(faces, rim).all(axis=1)]
    # The other half is the mirror image, joined at the rim: hair combs the same on both sides.
    mirrored = np.arange(len(vertices)) + len(vertices)
    mirrored[rim] = rim
    faces = np.concatenate([faces, mirrored[faces][:, ::-1]])
    used, faces = np.unique(faces, return_inverse=True)
    vertices = np.concatenate([vertices, vertices * [-1, 1, 1]])[used]
    mesh = trimesh.Trimesh(
        vertices,
        faces.reshape(-1, 3),
        vertex_normals=gradient(vertices),
        vertex_colors=colors(vertices),
        process=False,
    )
    if mesh.volume < 0.0:
        mesh.invert()
    return mesh


def main() -> None:
    """Write the mesh to a file."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("head.glb")
    mesh = make_head()
    scene = trimesh.Scene()
    scene.add_geometry(mesh, node_name="head", geom_name="head")
    out.write_bytes(trimesh.exchange.gltf.export_glb(scene, include_normals=True))
    print(f"{out}: {len(mesh.faces)} triangles, {out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
