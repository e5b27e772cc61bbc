"""``hairkit bench``: what things cost on this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hairkit.cli_options import OUT, checked_count, progress_bar
from hairkit.errors import HairkitError


def bench(
    case: Annotated[
        list[str] | None, typer.Option(help="A case by name; may be given again.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="As elsewhere; 'all' for every one that works.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the results to this file.")] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Compare two such files instead of running."),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Timed stretches of each case.")] = 7,
    draw: Annotated[bool, typer.Option("--draw", help="Time pictures in place of steps.")] = False,
    strands: Annotated[int, typer.Option(help="Strands that case 'formats' writes.")] = 100_000,
) -> None:
    """Time a 60 Hz step of each case, beside the seed engine's figures; pictures; or files."""
    from hairkit import bench as benchmarks
    from hairkit.bench_report import print_comparison, run_and_print

    if compare is not None:
        print_comparison(OUT, *(benchmarks.load_results(path) for path in compare))
        return
    if json is not None:
        from hairkit.io.files import check_output

        check_output(json, (".json",))
    checked_count("--repeats", repeats, 5, 1000)
    if draw:
        if case:
            raise HairkitError("--case: expected steps to be timed, not --draw")
        from hairkit.bench_draw import as_rows, print_pictures, time_pictures

        with progress_bar() as progress:
            pictures = time_pictures(backend, repeats=repeats, progress=progress)
        print_pictures(OUT, pictures)
        if json is not None:
            benchmarks.save_rows(as_rows(pictures), json)
            typer.echo(f"wrote {json}")
        return
    if case and len(case) > 1 and (own := next((name for name in case if name in _OWN), None)):
        raise HairkitError(f"--case: expected {own} alone")
    if case and case[0] in _OWN:
        checked_count("--strands", strands, 1, 10_000_000)
        _save_rows(_OWN[case[0]](backend, repeats, strands), json)
        return
    if case:
        cases = [benchmarks.case_named(name) for name in case]
    else:
        cases = [known for known in benchmarks.CASES if not known.asked]
    with progress_bar() as progress:
        results = run_and_print(OUT, cases, backend, repeats=repeats, progress=progress)
    if json is not None:
        benchmarks.save_results(results, json)
        typer.echo(f"wrote {json}")


def _save_rows(rows: Sequence[Any], json: Path | None) -> None:
    """Write results to the file of ``--json``, where it was given."""
    from dataclasses import asdict

    from hairkit.bench import save_rows

    if json is not None:
        save_rows([asdict(row) for row in rows], json)
        typer.echo(f"wrote {json}")


def _chains(backend: str | None, repeats: int, strands: int) -> Sequence[Any]:
    from hairkit.bench_chains import print_chains, time_chains

    chains = time_chains(backend, repeats=repeats)
    print_chains(OUT, chains)
    return [chains]


def _formats(backend: str | None, repeats: int, strands: int) -> Sequence[Any]:
    from hairkit.bench_formats import print_formats, time_formats

    formats, failures = time_formats(strands=strands, repeats=repeats)
    print_formats(OUT, formats, failures)
    return formats


def _fits(backend: str | None, repeats: int, strands: int) -> Sequence[Any]:
    from hairkit.bench_fit import count_fits, print_fits

    fits = count_fits(backend, targets=repeats)
    print_fits(OUT, fits)
    return fits


_OWN = {"chains_1000": _chains, "formats": _formats, "fit": _fits}
"""Cases that are no steps of a world, each with what it prints."""
