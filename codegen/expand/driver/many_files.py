"""Many files in, outcomes out. What is known to be clean is skipped before anything heavy is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.expand.driver.cache import Cache, content_mark
from codegen.expand.model import FileReport, Outcome
from codegen.expand.reading.files import find_files, read_bytes

if TYPE_CHECKING:
    import re

    from codegen.expand.driver.one_file import Job


def run_files(
    paths: Sequence[str],
    exclude: Sequence[str],
    prefilter: re.Pattern[bytes] | None,
    cache: Cache,
    job: Callable[[], Job],
) -> Iterator[Outcome]:
    """Work through the files that hold marks. `prefilter` None sends every file through the whole expansion."""
    for path in find_files(paths, exclude):
        data = read_bytes(path)
        if prefilter is not None and not prefilter.search(data):
            continue
        mark = content_mark(path, data)
        if (known := cache.sites_of(mark)) is not None:
            yield Outcome(FileReport(path, known_sites=known))
            continue
        outcome = _with_reasons(job().run(path, data), cache)
        if outcome.report.clean and not outcome.report.findings:
            text = outcome.old if outcome.new is None else outcome.new
            cache.add(content_mark(path, text), len(outcome.report.sites))
        yield outcome


def _with_reasons(outcome: Outcome, cache: Cache) -> Outcome:
    """Say of stale sites what changed, where that is remembered; remember what fresh ones were made from."""
    sites = []
    for site in outcome.report.sites:
        if site.state.value == "STALE" and (change := cache.change_since(site.seal, site.origin)):
            site = replace(site, reason=f"{site.reason}: {change}")
        if site.state.value == "FRESH" or outcome.new is not None:
            cache.learn(site.fresh_seal, site.origin)
        sites.append(site)
    return replace(outcome, report=replace(outcome.report, sites=tuple(sites)))
