"""What an annotation that the grammar does not know probably means: candidate annotations, the likeliest first.

Deterministic: words of the text against ids of the library and a fixed table. Nothing here says that a candidate fits
its place; the expander is asked for that.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import product

from codegen.patterns import BadArgument, Library, bind
from codegen.patterns.model import Pattern, PatternFileError
from codegen.patterns.source import BadSource, parse

MAX_CANDIDATES = 40
WORDS: tuple[tuple[str, str], ...] = (
    (r"\b(no|not|without|free of|never)\s+(\w+\s+)?duplicat|\bunique|\bdistinct\b", "VAL_NO_DUPLICATES"),
    (r"\bnon[- ]?negative|\bnot (be )?negative|>=\s*0|\bat least 0|\bat least zero", "VAL_NON_NEGATIVE"),
    (r"\bpositive|>\s*0", "VAL_POSITIVE"),
    (r"\b(disjoint|exclusive|(no|not|never)\s+overlap)", "VAL_DISJOINT"),
    (r"\bsubset|\bpart of|\bcontained in|\bbelong", "VAL_SUBSET"),
    (r"\b(same|equal) (length|size|number)", "VAL_EQUAL_LENGTH"),
    (r"\b(not|non|never|un)[- _]?empty|\bat least one|\bmust have|\bnon_?empty|\bexists\b.*\blist", "VAL_NON_EMPTY"),
    (r"\bempty", "VAL_EMPTY"),
    (r"\b(not|never|isn't) (be )?none\b|\bis set\b|\brequired\b|\bnot null", "VAL_NOT_NONE"),
    (r"\bpower of (two|2)", "VAL_POWER_OF_TWO"),
    (r"\bprobabilit|\bbetween 0 and 1\b", "VAL_PROBABILITY"),
    (r"\bfinite|\bnan\b|\binf(inite)?\b", "VAL_FINITE"),
    (r"\bdivisible|\bmultiple of", "VAL_DIVISIBLE"),
    (r"\bsorted|\bascending|\bincreasing order", "VAL_SORTED"),
    (r"\brange|\bbetween|\bbounds?\b|\blimits?\b", "VAL_INT_RANGE"),
    (r"\brank", "VAL_RANK"),
    (r"\btype\b|\binstance", "VAL_TYPE_CHECK"),
    (r"\bcallable", "VAL_CALLABLE"),
    (r"\bone of|\bchoice|\ballowed value", "VAL_ONE_OF"),
    (r"\bfile\b", "VAL_FILE_EXISTS"),
    (r"\block\b.*\bheld|\bholds? the lock", "VAL_LOCK_HELD"),
    (r"\bpartition", "VAL_PARTITION"),
    (r"\bmonoton|\bnever (falls|decreases)", "AST_MONOTONIC"),
    (r"\bunchanged|\bnot change", "AST_UNCHANGED"),
    (r"\bunreachable|\bnever (get|reach)", "AST_UNREACHABLE"),
    (r"\bpost[- ]?condition|\bensure|\bafter", "AST_POSTCONDITION"),
    (r"\bpre[- ]?condition|\brequire|\bbefore", "AST_PRECONDITION"),
    (r"\binvariant|\bconsisten|\bstate\b|\bholds", "AST_INVARIANT"),
)
OPPOSITES = {"VAL_EMPTY": "VAL_NON_EMPTY", "VAL_NON_EMPTY": "VAL_EMPTY", "VAL_ONE_OF": "VAL_NOT_IN"}
"""What a denied word speaks of; a word that is missing here speaks of nothing when it is denied."""
_DENIAL = re.compile(r"\b(not|never|no|cannot|without|neither|nor|\w+n't)\s+(?:\w+\s+){0,2}\Z")
_ID = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{3,}[A-Z0-9_]*")
_JOIN = re.compile(r"\s*(?:\+|&|;|\band\b)\s*(?=[A-Z][A-Z0-9]*_)|\s*,\s*(?=[A-Z][A-Z0-9]*_)")
_CLAIM = re.compile(r"[\w.\]\[()' ]+?(?:==|!=|<=|>=|<|>|\bis not\b|\bis\b|\bnot in\b|\bin\b)[^,;:]+")
_SPAN = re.compile(r"(-?\d+)\s*(?:\.{2,3}|\N{HORIZONTAL ELLIPSIS}|\N{EN DASH}|to|-)\s*(-?\d+)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def candidates(tag: str, text: str, library: Library, names: Sequence[str]) -> Iterator[str]:
    """Annotations without their comment sign: `VAL: ID(arguments) - note`. `names` can be spoken of at the place."""
    text = " ".join(text.split())
    seen: set[str] = set()
    for made in (*_from_ids(tag, text, library, names), *_from_words(tag, text, library, names)):
        if made not in seen and len(seen) < MAX_CANDIDATES:
            seen.add(made)
            yield made


def _from_ids(tag: str, text: str, library: Library, names: Sequence[str]) -> Iterator[str]:
    """Where the text begins with an id, or several: their nearest, the rest as the note."""
    parts = [part for part in _JOIN.split(text) if part]
    read = [_leading(part) for part in parts]
    if not read or read[0] is None:
        return
    known = [each for each in read if each is not None]
    # What was written as an argument and cannot be kept is said at least.
    lost = [arguments for _, arguments, _ in known if _loses(arguments)]
    note = " ".join([rest for _, _, rest in known if rest] + lost)
    note = re.sub(r"^[-:,.\N{EN DASH}\N{EM DASH}#\s]+", "", note)
    choices = [
        list(_uses(tag, id, arguments, f"{id} {rest}", library, _spoken(text, names))) for id, arguments, rest in known
    ]
    for items in product(*(choice[:4] or [""] for choice in choices)):
        kept = [item for item in dict.fromkeys(items) if item]
        if kept:
            yield _annotation(tag, kept, note)
    for choice in choices:  # Where not all of them can be kept together, one of them says part of it.
        for item in choice[:6]:
            yield _annotation(tag, [item], note or text)


def _leading(part: str) -> tuple[str, str, str] | None:
    """(id, arguments without brackets, rest) of a text that begins with an id."""
    found = _ID.match(part)
    if found is None:
        return None
    rest = part[found.end() :]
    if not rest.lstrip().startswith("("):
        return found.group(), "", rest.strip()
    from codegen.expand.reading.grammar import matching_bracket

    start = part.index("(", found.end())
    end = matching_bracket(part, start)
    if end is None:
        return found.group(), part[start + 1 :].strip(), ""
    return found.group(), part[start + 1 : end].strip(), part[end + 1 :].strip()


def _uses(tag: str, id: str, arguments: str, text: str, library: Library, spoken: Sequence[str]) -> Iterator[str]:
    for near in _nearest(tag, id, text, library):
        pattern = _pattern(library, near)
        if pattern is not None:
            yield from _fitted(pattern, arguments, spoken, text)


def _nearest(tag: str, id: str, text: str, library: Library) -> list[str]:
    """Ids of the library, the likeliest first: the id itself, one of the same words, one that the words speak of."""
    if id in library:
        return [id]
    body = id.partition("_")[2] if id.partition("_")[0] in ("VAL", "AST") else id
    spoken = re.sub(r"_", " ", f"{body} {text}").lower()
    meant = _meant(spoken, library)
    wanted = set(body.split("_"))
    shared = [each for each in library.ids() if wanted & set(each.split("_")[1:]) - {"NOT", "NO", "IN", "OF"}]
    shared.sort(key=lambda each: (-len(wanted & set(each.split("_")[1:])), each))
    close = difflib.get_close_matches(id, library.ids(), n=3, cutoff=0.75)
    found = [*close[:1], *meant[:2], *shared[:2], *close[1:]]
    if tag == "AST" or id.startswith("AST_"):
        found.append("AST_INVARIANT")
    family = "AST" if id.startswith("AST_") else "VAL" if id.startswith("VAL_") else tag
    return [each for each in dict.fromkeys(found) if each in library and each.startswith(f"{family}_")]


def _meant(text: str, library: Library) -> list[str]:
    """Ids that the words speak of, in the order of the table; each word counts once: "non-empty" is not "empty"."""
    found: list[str | None] = []
    for word, id in WORDS:
        while place := re.search(word, text):
            denied = _DENIAL.search(text[: place.start()])
            found.append(OPPOSITES.get(id) if denied else id)
            text = f"{text[: place.start()]} | {text[place.end() :]}"
    return [id for id in dict.fromkeys(found) if id is not None and id in library]


def _spoken(text: str, names: Sequence[str]) -> list[str]:
    """Names that the text speaks of, in its order, "device mapping" for device_mapping; the longest of several."""
    plain = re.sub(r"[_\s]+", " ", text.lower())
    places: dict[int, str] = {}
    for name in sorted(names, key=lambda n: (-len(n.removeprefix("self.")), n.startswith("self."), n)):
        words = re.sub(r"[_\s]+", " ", name.removeprefix("self.").lower())
        for found in re.finditer(rf"(?<![\w.]){re.escape(words)}(?!\w)|(?<=self\.){re.escape(words)}(?!\w)", plain):
            taken = any(at <= found.start() < at + len(other.removeprefix("self.")) for at, other in places.items())
            if not taken:
                places[found.start()] = name
    return list(dict.fromkeys(places[at] for at in sorted(places)))


def _fitted(pattern: Pattern, arguments: str, spoken: Sequence[str], text: str) -> Iterator[str]:
    """The pattern with arguments that it takes, made of those that were written and of what the text speaks of."""
    positional, keywords = _split(arguments)
    for flag in [each for each in positional if _is_flag(pattern, each)]:
        positional.remove(flag)
        keywords[flag] = "True"
    for name in [each for each in keywords if each not in ("target", "each", "error", "about")]:
        if pattern.parameter(name) is None:
            near = difflib.get_close_matches(name, [p.name for p in pattern.parameters], n=1, cutoff=0.6)
            value = keywords.pop(name)
            if near:
                keywords[near[0]] = value
    numbers = _NUMBER.findall(text)
    tries: list[tuple[list[str], dict[str, str]]] = [(positional, keywords)]
    span = _SPAN.search(arguments)
    if span is not None and pattern.parameter("min") is not None and pattern.parameter("max") is not None:
        kept = [each for each in positional if each.isidentifier()] or list(spoken[:1])
        tries.insert(0, (kept, {**keywords, "min": span[1], "max": span[2]}))
    if pattern.target == "expression":
        tries += [([claim], {}) for claim in _claims(text)] + [([name], {}) for name in spoken]
    else:
        tries.append((positional[:1], keywords))
        if not positional:
            # A lone name would be the argument, and the target a guess, where the pattern needs an argument.
            asks = any(p.positional and p.default is None for p in pattern.parameters)
            tries = [(list(spoken[:count]), keywords) for count in ((2,) if asks else (1,)) if spoken] + tries
        bounds = dict(zip(("min", "max"), numbers, strict=False))
        ranged = pattern.parameter("min") is not None and pattern.parameter("max") is not None
        if ranged and bounds and not positional and not keywords:
            tries = [([*spoken[:1]], bounds), ([], bounds)]
        if not arguments:
            tries += [([*spoken[:1], *numbers[:1]], {}), ([], {})]
    for given, named in tries:
        if _binds(pattern, given, named):
            inside = ", ".join([*given, *(f"{name}={value}" for name, value in named.items())])
            yield f"{pattern.id}({inside})" if inside else pattern.id


def _loses(arguments: str) -> bool:
    """Whether a part of the arguments is no expression, so that no proposal can keep it as it is."""
    positional, keywords = _split(arguments)
    return len(_parts(arguments)) != len(positional) + len(keywords)


def _parts(arguments: str) -> list[str]:
    """Arguments cut at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(arguments + ","):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth <= 0:
            parts.append(arguments[start:at].strip())
            start = at + 1
    return [part for part in parts if part]


def _split(arguments: str) -> tuple[list[str], dict[str, str]]:
    """Positional arguments and keywords; what is no expression is left out."""
    positional: list[str] = []
    keywords: dict[str, str] = {}
    for part in _parts(arguments):
        name, equals, value = part.partition("=")
        keyword = bool(equals) and name.strip().isidentifier() and not value.startswith("=")
        try:
            parse(value if keyword else part)
        except BadSource:
            continue
        if keyword:
            keywords[name.strip()] = value.strip()
        else:
            positional.append(part)
    return positional, keywords


def _is_flag(pattern: Pattern, text: str) -> bool:
    parameter = pattern.parameter(text)
    return parameter is not None and parameter.type == "bool"


def _claims(text: str) -> Iterator[str]:
    """Comparisons that stand in a text."""
    for found in _CLAIM.finditer(text):
        words = found.group().strip().split(" ")
        for start in range(len(words)):
            for end in range(len(words), start + 2, -1):
                claim = " ".join(words[start:end])
                try:
                    node = parse(claim)
                except BadSource:
                    continue
                if isinstance(node, ast.Compare):
                    yield claim


def _binds(pattern: Pattern, positional: list[str], keywords: dict[str, str]) -> bool:
    try:
        bound = bind(pattern, positional, keywords)
    except BadArgument:
        return False
    return pattern.target != "expression" or bound.target is not None


def _pattern(library: Library, id: str) -> Pattern | None:
    try:
        return library.get(id)
    except (LookupError, PatternFileError):
        return None


def _from_words(tag: str, text: str, library: Library, names: Sequence[str]) -> Iterator[str]:
    """Free text: the patterns that its words speak of, all together first, those of the tag before others."""
    spoken = _spoken(text, names)
    meant = _meant(re.sub(r"_", " ", text).lower(), library)
    claims = list(_claims(text)) if tag == "AST" else []
    if claims and not any(id.startswith("AST_") for id in meant):
        meant.append("AST_INVARIANT")
    meant.sort(key=lambda id: not id.startswith(f"{tag}_"))
    patterns = [pattern for id in meant if (pattern := _pattern(library, id))]
    choices = [list(_fitted(pattern, "", spoken, text)) for pattern in patterns]
    if any(id.startswith("VAL_") for id in meant):
        # "n is positive" does not claim that n is true.
        bare = {f"{id}({name})" for id in meant if id.startswith("AST_") for name in spoken}
        choices = [[item for item in choice if item not in bare] for choice in choices]
    together = [choice[0] for choice in choices if choice and choice[0].startswith(f"{tag}_")]
    if len(together) > 1 and tag == "VAL":
        yield _annotation(tag, together, text)
    for choice in choices:
        for item in choice:
            yield _annotation(tag, [item], text)


def _annotation(tag: str, items: Sequence[str], note: str) -> str:
    parts: list[str] = []
    for item in items:
        own = item.partition("_")[0]
        parts.append(item if own == tag or not parts else f"{own}: {item}")
        tag = own if own in ("VAL", "AST") else tag
    first = items[0].partition("_")[0]
    head = first if first in ("VAL", "AST") else tag
    note = re.sub(r"^[-:,.#\s]+", "", note)
    return f"{head}: {', '.join(parts)}" + (f" - {note}" if note else "")
