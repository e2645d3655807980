"""The template language is closed: nothing reaches Python objects, runs long or grows without bound."""

from __future__ import annotations

import pytest

from codegen.patterns import Bound, RenderError, Site, render
from codegen.patterns.model import Pattern
from codegen.patterns.template import template_problems


def pattern(template: str, message: str = "m") -> Pattern:
    return Pattern(id="VAL_X", tag="VAL", summary="", template=template, message=message)


@pytest.mark.parametrize(
    "template",
    [
        "{{ target.__class__ }}", "{{ target['__class__'] }}", "{{ target.upper() }}", "{{ ''.join(target) }}",
        "{{ target|attr('x') }}", "{{ target|format(1) }}", "{{ target|map('x') }}", "{{ target ~ target }}",
        "{{ target * 9 }}", "{{ 9 ** 9 }}", "{{ 'x%9d' % 1 }}", "{{ [target, target] }}", "{{ {1: 2} }}",
        "{% set x = target %}", "{% set x = [1] %}", "{% set x %}a{% endset %}",
        "{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{% from 'x' import y %}",
        "{% macro m() %}{{ m() }}{% endmacro %}", "{% block b %}{% endblock %}", "{% call fresh() %}x{% endcall %}",
        "{% filter upper %}x{% endfilter %}", "{% for x in target recursive %}{{ loop(x) }}{% endfor %}",
        "{% for x in target %}{% for y in target %}{% for z in target %}{{ z }}{% endfor %}{% endfor %}{% endfor %}",
        "{{ loop.cycle(1, 2) }}", "{{ range(9) }}", "{{ fresh(*target) }}", "{{ fresh(**target) }}",
        "{{ lipsum() }}", "{{ self }}", "{{ cycler() }}", "{{ undefined_name }}",
        "{% if target is mapping %}{% endif %}",
        "{{ -target }}", "{{ target[0:1] }}", "{% raw %}{{{% endraw %}{% do x %}", "{{", "{% if %}",
        "{{ " + "(" * 400 + "target" + ")" * 400 + " }}",
    ],
)  # fmt: skip
def test_what_is_outside_the_language_is_refused_when_loading(template: str) -> None:
    assert list(template_problems(pattern(template), "template"))


@pytest.mark.parametrize(
    "template",
    [
        "{% if target is simple and not (target is literal) %}{{ target }}{% elif target == 'x' %}a{% endif %}",
        "{% set x = fresh('x') %}{{ x }} = {{ code('len(%)', target) }}",
        "{% for e in target|elements %}{{ loop.index0 }}{% if not loop.last %}, {% endif %}{% endfor %}",
        "{{ target if target is literal else each|atom }}{# a comment #}",
    ],
)
def test_the_language_itself_is_accepted(template: str) -> None:
    assert list(template_problems(pattern(template), "template")) == []


def test_an_undefined_name_is_an_error_when_rendering_too() -> None:
    with pytest.raises(RenderError, match="'nothing' is undefined"):
        render(pattern("{{ nothing }}"), Bound({}, "x"), Site(target="x"))


def test_wrong_use_of_a_function_is_an_error_of_the_pattern() -> None:
    for template in ("{{ code('len(%)') }}", "{{ target|elements|join }}", "{{ fresh() }}"):
        with pytest.raises(RenderError, match="VAL_X does not render"):
            render(pattern(template), Bound({}, "x"), Site(target="x"))
