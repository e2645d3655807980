"""The two examples of the mission, and the six states, on exact text."""

from __future__ import annotations

import ast

import pytest

from tests.codegen.expand.helpers import dedent, expand, report, states, strip

ANNOTATED = dedent("""
    class Pool:
        def shrink_sampler(self, target_gpus: list[int]) -> list[int]:
            # VAL: VAL_INT_RANGE(min=0, max=7)
            offload_ranks = self._calculate_offload_ranks(target_gpus)
            # AST: AST_POSTCONDITION(len(offload_ranks) > 0)
            return offload_ranks

        def _calculate_offload_ranks(self, gpus):
            return gpus[1:]
""")
EXPANDED = dedent("""
    class Pool:
        def shrink_sampler(self, target_gpus: list[int]) -> list[int]:
            # VAL: VAL_INT_RANGE(min=0, max=7)
            for _gpu in target_gpus:
                if not 0 <= _gpu <= 7:
                    raise ValueError(f"Pool.shrink_sampler: target_gpus must lie in [0, 7], got {_gpu!r}")
            # END VAL df2a16
            offload_ranks = self._calculate_offload_ranks(target_gpus)
            # AST: AST_POSTCONDITION(len(offload_ranks) > 0)
            assert len(offload_ranks) > 0, f"Post-condition: offload_ranks not empty, got {offload_ranks}"
            # END AST 8d493d
            return offload_ranks

        def _calculate_offload_ranks(self, gpus):
            return gpus[1:]
""")
EDITED = EXPANDED.replace("<= 7:", "<= 9:")


def test_the_examples_of_the_mission_expand_to_the_agreed_text() -> None:
    assert expand(ANNOTATED) == EXPANDED


def test_a_list_typed_range_checks_each_element_and_raises() -> None:
    namespace: dict[str, type] = {}
    exec(EXPANDED, namespace)
    pool = namespace["Pool"]()
    assert pool.shrink_sampler([3, 4]) == [4]
    with pytest.raises(ValueError, match=r"target_gpus must lie in \[0, 7\], got 8"):
        pool.shrink_sampler([3, 8])
    with pytest.raises(AssertionError, match=r"Post-condition: offload_ranks not empty, got \[\]"):
        pool.shrink_sampler([3])


def test_the_assert_equals_that_of_the_article() -> None:
    article = 'assert len(offload_ranks) > 0, \\\n    f"Post-condition: offload_ranks not empty, got {offload_ranks}"\n'
    ours = next(line for line in EXPANDED.splitlines() if "assert" in line).strip()
    assert ast.dump(ast.parse(ours)) == ast.dump(ast.parse(article))


def test_a_second_expand_changes_no_byte() -> None:
    assert expand(EXPANDED) == EXPANDED
    assert states(EXPANDED) == ["FRESH", "FRESH"]


def test_strip_gives_the_text_from_before() -> None:
    assert strip(EXPANDED) == ANNOTATED


def test_an_annotation_alone_is_unexpanded() -> None:
    assert states(ANNOTATED) == ["UNEXPANDED", "UNEXPANDED"]


def test_a_deleted_block_is_repaired_byte_for_byte() -> None:
    lines = EXPANDED.splitlines(keepends=True)
    emptied = "".join(lines[:3] + lines[6:])
    assert states(emptied) == ["MISSING", "FRESH"]
    assert expand(emptied) == EXPANDED
    without_mark = emptied.replace("        # END VAL df2a16\n", "")
    assert states(without_mark) == ["UNEXPANDED", "FRESH"]
    assert expand(without_mark) == EXPANDED


def test_an_edited_block_is_refused_with_line_and_diff() -> None:
    done = report(EDITED)
    assert done.text is None and done.refused
    (finding,) = done.findings
    assert (finding.line, finding.code) == (3, "edited")
    assert "-            if not 0 <= _gpu <= 9:" in finding.message
    assert "+            if not 0 <= _gpu <= 7:" in finding.message


def test_force_replaces_strictly_between_the_marks() -> None:
    assert expand(EDITED, force=True) == EXPANDED


def test_changed_arguments_make_a_block_stale_and_are_named() -> None:
    changed = EXPANDED.replace("VAL_INT_RANGE(min=0, max=7)", "VAL_INT_RANGE(min=0, max=3)")
    done = report(changed)
    assert [site.state.value for site in done.sites] == ["STALE", "FRESH"]
    assert "VAL_INT_RANGE" in done.sites[0].reason and done.sites[0].line == 3
    assert done.text is not None and "must lie in [0, 3]" in done.text


def test_a_block_whose_annotation_is_gone_is_removed_if_nobody_edited_it() -> None:
    orphaned = EXPANDED.replace("        # VAL: VAL_INT_RANGE(min=0, max=7)\n", "")
    assert states(orphaned) == ["ORPHAN", "FRESH"]
    lines = EXPANDED.splitlines(keepends=True)
    assert expand(orphaned) == "".join(lines[:2] + lines[7:])


def test_an_edited_orphan_is_refused() -> None:
    orphaned = EDITED.replace("        # VAL: VAL_INT_RANGE(min=0, max=7)\n", "")
    done = report(orphaned)
    assert done.text is None
    assert [finding.code for finding in done.findings] == ["orphan"]


def test_a_half_deleted_block_that_no_longer_parses_is_edited_and_repaired_by_force() -> None:
    lines = EXPANDED.splitlines(keepends=True)
    half = "".join(lines[:5] + lines[6:])
    done = report(half)
    assert done.text is None
    assert [(finding.line, finding.code) for finding in done.findings] == [(3, "edited")]
    assert "+                raise ValueError" in done.findings[0].message
    assert expand(half, force=True) == EXPANDED
