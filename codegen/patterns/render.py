"""Render a bound pattern at a site into Python statements, at zero indentation.

The result parses, ends each line with a newline, evaluates the target once unless that is a plain name, and holds
no text of the site outside the grammar that `arguments` accepts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from codegen.patterns.claims import empty_check, replace_names, shown_values
from codegen.patterns.guard import guarded, judges_whole
from codegen.patterns.messages import Fields, lines, source
from codegen.patterns.model import Bound, Pattern, RenderError, Site
from codegen.patterns.once import Bindings, bindings, repeated
from codegen.patterns.source import (
    BadSource,
    atom,
    elements,
    is_literal,
    is_simple,
    negated,
    operand,
    quiet_parse,
    tidy,
)
from codegen.patterns.template import code, compiled

_MESSAGE = "\x01message\x01"
_FAILURE = "\x01failure\x01"
_BODY = "\x01body\x01"
_BREAK = "\x01break\x01"
_UNIT = "    "


def render(pattern: Pattern, bound: Bound, site: Site) -> str:
    """Statements that check the pattern at the site. The target and each argument are evaluated once.

    Raises RenderError when the template does not give valid Python, or when the site lacks what the pattern needs.
    """
    try:
        # Which arguments the check would read several times is seen in the code that it becomes.
        fresh = functools.cache(site.fresh)
        wanted = bindings(pattern, bound, fresh)
        if not site.binds_calls:
            wanted = Bindings()
        if wanted.sources:
            wanted = wanted.only(repeated(_render(pattern, bound, site, wanted, fresh), wanted))
        return _render(pattern, bound, site, wanted, fresh)
    except BadSource as error:
        raise RenderError(f"{pattern.id}: {error}") from error


def _render(pattern: Pattern, bound: Bound, site: Site, once: Bindings, fresh: Callable[[str], str]) -> str:
    target, prelude = _target(pattern, bound, site, fresh)
    each = target
    if site.each != "none":
        each = fresh(_stem(site))
    error = bound.error or pattern.error
    claim = _claim(bound, site)
    variables: dict[str, Any] = {name: operand(once.renamed(text)) for name, text in bound.values.items()}
    variables |= {
        "target": target, "each": each, "label": site.label or (target or ""), "function": site.function,
        "expression": claim, "result": site.result or "result", "error": error,
        "where": f"{site.function}: " if site.function else "", "fresh": fresh, "code": code,
    }  # fmt: skip
    parts = _message(pattern, bound, site, variables, once)
    variables |= {"message": _MESSAGE, "body": _BODY, "claim": _claimer(bound, site, error)}
    rendered = _run(pattern, pattern.template, variables)
    rows = [part for row in rendered.split("\n") if row.strip() for part in _broken(row.rstrip())]
    failure: list[Any] = []
    if site.guarded != "never" and each and (site.guarded == "always" or judges_whole("\n".join(rows), each)):
        failure = _failure(pattern, variables)
        rows = guarded(rows, fresh, f"raise {error}({_FAILURE})")
    if site.each != "none":
        over = f"{atom(target)}.values()" if site.each == "values" else target
        rows = [f"for {each} in {over}:", *(_UNIT + row for row in rows)]
    rows = [*prelude, *once.lines, *rows]
    rows = [done for row in rows for done in _finish(row, parts, failure, site)]
    text = "".join(_indented(row, site.indent_unit) + "\n" for row in rows)
    _check(pattern, text)
    return text


def _target(pattern: Pattern, bound: Bound, site: Site, fresh: Callable[[str], str]) -> tuple[str, list[str]]:
    """The target as an operand, after the lines that evaluate it once if reading it twice could differ."""
    text = site.target if site.target is not None else bound.target
    if pattern.target == "none":
        return "", []
    if pattern.target == "expression":
        if site.expression is None and bound.target is None:
            raise RenderError(f"{pattern.id} needs an expression")
        return "", []
    if text is None:
        raise RenderError(f"{pattern.id} needs a target")
    text = tidy(text)
    if is_simple(text):
        return operand(text), []
    name = fresh("checked")
    return name, [f"{name} = {text}"]


def _claim(bound: Bound, site: Site) -> str:
    text = site.expression if site.expression is not None else bound.target
    if text is None:
        return ""
    text = tidy(text)
    if site.result is not None and site.result != "result":
        text = replace_names(text, {"result": site.result})
    return text


def _failure(pattern: Pattern, variables: dict[str, Any]) -> list[Any]:
    """The message for a value that the condition cannot judge."""
    fields, each = Fields(), variables["each"]
    kind = fields.plain(f"{atom(each)}.__class__.__name__")
    text = f"{variables['where']}{variables['label']} cannot be judged by {pattern.id}, got {kind} {fields.value(each)}"
    return list(fields.parts(text))


def _message(pattern: Pattern, bound: Bound, site: Site, variables: dict[str, Any], once: Bindings) -> list[Any]:
    fields = Fields(renamed=once.renamed)

    def show(text: str) -> str:
        return text if is_literal(text) else fields.value(text)

    names = {
        **variables, **bound.values, "show": show,
        "value": fields.value, "small": fields.small, "plain": fields.plain, "text": fields.text,
        "described": _described(variables["expression"], fields) if pattern.target == "expression" else "",
    }  # fmt: skip
    words = _words(site)
    text = _run(pattern, pattern.message, names).strip() + _about(bound.values.get("about"), fields)
    parts: list[Any] = [_reworded(part, words) if isinstance(part, str) else part for part in fields.parts(text)]
    return [*parts, f" - {site.note}"] if site.note else parts


def _about(text: str | None, fields: Fields) -> str:
    """The values that tell one failure from another: those of a tuple written out, or the one value."""
    if text is None:
        return ""
    try:
        shown = elements(text) if text.startswith("(") else [text]
    except BadSource:
        shown = [text]
    return f" ({', '.join(f'{part}={fields.value(part)}' for part in shown)})" if shown else ""


def _words(site: Site) -> dict[str, str]:
    """What messages call the names that the expander made up."""
    words = {snapshot: f"old({original})" for original, snapshot in site.old.items()}
    if site.result is not None and site.result != "result":
        words[site.result] = "result"
    return words


def _reworded(text: str, words: dict[str, str]) -> str:
    if not words:
        return text
    return re.sub(rf"\b({'|'.join(map(re.escape, words))})\b", lambda match: words[match.group()], text)


def _described(claim: str, fields: Fields) -> str:
    """What was claimed, and the values it was about."""
    subject = empty_check(claim)
    if subject is not None:
        text, got = f"{subject} not empty", fields.plain(subject)
    else:
        text, shown = claim, shown_values(claim)
        got = fields.value(claim) if shown == [claim] else ", ".join(f"{n}={fields.value(n)}" for n in shown)
    return f"{text}, got {got}" if got else text


def _claimer(bound: Bound, site: Site, error: str) -> Callable[[str], str]:
    """`claim(condition)`: an assert; an explicit raise where asserts may be stripped or another error is named."""

    def claim(condition: str) -> str:
        if site.ast_mode == "assert" and bound.error is None:
            return f"assert {condition}, {_MESSAGE}"
        return f"if {negated(condition)}:{_BREAK}{_UNIT}raise {error}({_MESSAGE})"

    return claim


def _broken(row: str) -> list[str]:
    """The row cut where a claim takes several lines, all of them indented as the template indents the claim."""
    indent = row[: len(row) - len(row.lstrip())]
    first, *rest = row.split(_BREAK)
    return [first, *(indent + part for part in rest)]


def _run(pattern: Pattern, template: str, variables: dict[str, Any]) -> str:
    from jinja2 import TemplateError
    from jinja2.exceptions import SecurityError

    try:
        return compiled(template).render(variables)
    except SecurityError as error:
        raise RenderError(f"{pattern.id}: {error}") from error
    except (TemplateError, BadSource, TypeError, ValueError, RecursionError) as error:
        raise RenderError(f"{pattern.id} does not render: {error}") from error


def _finish(row: str, parts: list[Any], failure: list[Any], site: Site) -> list[str]:
    """Put the message, or the enclosed statement, in place of its mark."""
    indent = row[: len(row) - len(row.lstrip())]
    if row.strip() == _BODY:
        if not site.body:
            raise RenderError("a wrapping pattern needs the statement it encloses")
        return [indent + line if line else "" for line in site.body.rstrip("\n").split("\n")]
    mark = _MESSAGE if _MESSAGE in row else _FAILURE
    if mark not in row:
        return [row]
    parts = parts if mark == _MESSAGE else failure
    whole = row.replace(mark, source(parts))
    if len(whole) <= site.width:
        return [whole]
    split = lines(parts, site.width - len(indent) - len(_UNIT))
    before, after = row.split(mark)
    opened = "" if before.endswith("(") else "("
    return [before + opened, *(indent + _UNIT + line for line in split), indent + (")" if opened else "") + after]


def _indented(row: str, unit: str) -> str:
    if unit == _UNIT:
        return row
    depth = (len(row) - len(row.lstrip(" "))) // len(_UNIT)
    return unit * depth + row[depth * len(_UNIT) :]


def _check(pattern: Pattern, text: str) -> None:
    try:
        tree = quiet_parse(text, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RenderError(f"{pattern.id} does not render to Python: {error}\n{text}") from error
    if not tree.body:
        raise RenderError(f"{pattern.id} renders to nothing")


def _stem(site: Site) -> str:
    """A name for one element: `target_gpus` → gpu."""
    if site.each == "keys":
        return "key"
    words = re.findall(r"[A-Za-z0-9]+", (site.label or site.target or "").rpartition(".")[2])
    word = words[-1].lower() if words and words[-1][0].isalpha() else ""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "ches", "shes", "xes")):
        return word[:-2]
    if word == "indices":
        return "index"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else "item"
