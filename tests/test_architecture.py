"""The package's shape: who imports whom, where Taichi may be named, how long a module may be."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "hairkit"

# What each part may import beside itself. A part is a folder, or a module directly in the package.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "paths": {"errors"},
    "shapes": {"errors", "paths"},
    "poses": {"errors"},
    "motions": {"errors", "poses"},
    "landmarks": {"errors", "shapes"},
    "style": {"errors", "paths"},
    "head": {"errors", "paths", "shapes", "landmarks"},
    "groom": {"errors", "paths", "style", "head", "shapes"},
    "io": {"errors", "paths", "style", "head", "groom"},
    "rigging": {"errors", "paths", "io"},
    # It knows the world by what it calls of it only.
    "sway": {"errors", "paths", "shapes", "io", "rigging"},
    "backend": {"errors", "paths"},
    "sim": {
        "sway",
        "errors",
        "paths",
        "shapes",
        "style",
        "head",
        "groom",
        "motions",
        "poses",
        "backend",
        "draw",
    },
    "fitting": {
        "errors",
        "style",
        "head",
        "groom",
        "shapes",
        "backend",
        "sim",
    },
    "draw": {
        "errors",
        "paths",
        "shapes",
        "style",
        "head",
        "groom",
        "io",
        "motions",
        "poses",
        "backend",
        "sim",
    },
}
# These see everything; nothing but each other sees them.
TOP = {
    "__main__",
    "bench",
    "bench_chains",
    "bench_draw",
    "bench_fit",
    "bench_formats",
    "bench_report",
    "catalog",
    "cli",
    "cli_bench",
    "cli_fit",
    "cli_options",
    "fit_file",
    "cli_rig",
    "cli_simulate",
    "cli_strands",
    "demo",
    "record",
    "record_rig",
    "view",
}
NUMPY_SIDE = tuple(part for part in ALLOWED if part not in ("backend", "sim", "fitting", "draw"))
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def part_of(path: Path) -> str:
    """Return which part of the package a module belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Return every module that a file imports anywhere in it, by its full name."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names


def parts_imported(path: Path) -> set[str]:
    """Return the parts of hairkit that a file imports."""
    inside = {name.split(".")[1] for name in imported(path) if name.startswith("hairkit.")}
    return {
        part for part in inside if (PACKAGE / part).is_dir() or (PACKAGE / f"{part}.py").exists()
    }


def test_every_module_has_a_place_in_the_dependency_order():
    """Require a rule for each part, so that a new one is thought about."""
    assert {part_of(path) for path in MODULES} <= {*ALLOWED, *TOP}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path):
    """Compare what a module imports with what its part may import."""
    part = part_of(path)
    if part in TOP:
        return
    assert parts_imported(path) - {part} <= ALLOWED[part]


def test_solver_reaches_drawing_only_on_request():
    """Let `sim` import `draw` inside functions only: who draws nothing loads no drawing."""
    for path in (PACKAGE / "sim").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "hairkit.draw" not in ast.unparse(node), f"{path.name}: {ast.unparse(node)}"


def test_backend_knows_nothing_of_hair():
    """Forbid words of hair in the backend's imports, lazily too."""
    for path in (PACKAGE / "backend").glob("*.py"):
        assert parts_imported(path) <= {"backend", "errors", "paths"}


def test_only_backend_names_taichi():
    """Keep the one door to Taichi that a fork could take the place of."""
    for path in [*MODULES, *(ROOT / "tests").glob("*.py")]:
        if part_of(path) == "backend" if path.is_relative_to(PACKAGE) else False:
            continue
        taichi = {name for name in imported(path) if name.split(".")[0] == "taichi"}
        assert not taichi, f"{path}: imports {taichi}"


def loaded_after(program: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after a program."""
    run = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules, sep='\\n')"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return set(run.stdout.split())


def test_importing_hairkit_starts_nothing():
    """Import the package and look at its names; neither Taichi, trimesh nor NumPy may load."""
    loaded = loaded_after("import hairkit\ndir(hairkit)")
    assert "hairkit" in loaded
    assert not loaded & {"taichi", "trimesh", "numpy", "pydantic"}


def test_numpy_side_leaves_taichi_out():
    """Import the whole NumPy side in a fresh interpreter and see that Taichi stayed out."""
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in MODULES
        if part_of(path) in NUMPY_SIDE
    ]
    assert len(names) > len(NUMPY_SIDE)
    loaded = loaded_after("\n".join(f"import {name}" for name in names))
    assert set(names) <= loaded
    assert not loaded & {"taichi", "hairkit.backend"}


def test_growing_hair_leaves_taichi_out():
    """Grow a groom in a fresh interpreter: planning hair needs no solver."""
    loaded = loaded_after(
        "import hairkit as hk\n"
        "hk.grow(hk.load_style('short'), hk.Head.sphere(radius=0.1), guides=8, seed=0)"
    )
    assert "hairkit.groom" in loaded
    assert "taichi" not in loaded


def test_public_names_are_there():
    """Look up every name that the package announces."""
    import hairkit

    announced = {
        "Camera",
        "Groom",
        "HairkitError",
        "Head",
        "Style",
        "World",
        "errors",
        "grow",
        "load_strands",
        "load_style",
        "motions",
        "save_strands",
        "style_names",
    }
    assert announced <= set(dir(hairkit))
    for name in announced:
        assert getattr(hairkit, name) is not None


def test_unknown_public_name_is_an_attribute_error():
    """Ask the package for a name that it does not have."""
    import hairkit

    with pytest.raises(AttributeError, match="no attribute 'Wig'"):
        _ = hairkit.Wig


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_stay_readable(path: Path):
    """Bound a module's length, and forbid drawers for everything."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600
    assert path.stem not in {"utils", "util", "helpers", "common", "misc"}


def kernel_arguments(path: Path) -> list[tuple[str, list[str]]]:
    """Return each Taichi kernel of a module with its argument names."""
    kernels = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and any(
            ast.unparse(decorator) == "ti.kernel" for decorator in node.decorator_list
        ):
            kernels.append((node.name, [argument.arg for argument in node.args.args]))
    return kernels


def test_kernels_take_no_self():
    """Keep kernels out of classes: Taichi freezes attributes and compiles for each object."""
    for path in MODULES:
        for name, arguments in kernel_arguments(path):
            assert "self" not in arguments, f"{path.name}: kernel {name} is a method"
