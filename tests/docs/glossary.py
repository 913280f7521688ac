"""Words that the project's English replaces, and the contexts in which each is legitimate.

A row is (regular expression, the term to use, regular expressions of allowed contexts). The test
matches it without regard to case against documentation, help texts and contract descriptions. An
allowed context is matched against the text around the hit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A discouraged word or phrase."""

    pattern: str
    use: str
    allowed: tuple[str, ...] = ()


_VALUE = (r"[|*`\"] ?own quota ?[|*`\"]",)
"""Values of an attribution: in a table's cell, in italics, in quotation marks."""

TERMS: tuple[Term, ...] = (
    Term(
        r"\b(other|whose|of|its|pure) (chance|luck)\b",
        "randomness, random seed",
        (r"expected by chance", r"of chance\b.*p ="),
    ),
    Term(r"\bno luck\b", "randomness"),
    Term(r"\bwhat it delivers\b", "results"),
    Term(r"\bwhat is odd\b", "findings, anomalies"),
    Term(r"\bin short\b", "summary"),
    Term(r"\btrials? that do(es)? not count\b", "excluded trials"),
    Term(
        r"\bwhat stood beside\b|\bbeside (the|every|each) trials?\b",
        "system counters during trials",
    ),
    Term(r"\basked for and not given\b", "unavailable statistics"),
    Term(r"\bhow sure\b", "confidence interval"),
    Term(r"\blooks? at the clock\b|\bof a look\b|\beach look\b", "clock read, observation window"),
    Term(r"\bown quota\b", "own cgroup quota", _VALUE),
    Term(r"\bown machine\b", "local load"),
    Term(r"\bquiet, noisy, quiet\b", "baseline, loaded, recovery (ABA design)"),
    Term(r"\bloads that prove\b|\bprove(s)? (afterwards )?that (it|they) ran\b", "verified loads"),
    Term(r"\btools? of others\b|\btool of somebody else\b", "third-party tool"),
    Term(r"\bours\b|\btheirs\b", "measured here, published", (r"`(ours|theirs)`",)),
    Term(r"\bshelf\b", "list of studies"),
    Term(r"\bcr(ies|y) wolf\b", "reports a false positive"),
    Term(r"\bbeg[iau]ns? anew\b", "start a new run"),
    Term(r"\bgo(es|ing)? on where\b|\bgo(es)? on with run\b", "resumes"),
    Term(
        r"\bis (said|told) to be\b|\bsaid out loud\b|\bis told\b|\bare told\b|\bsays so\b",
        "reported, stated",
    ),
    Term(r"\bwhat lacks\b|\bwhich lacks\b", "missing"),
    Term(r"\bfinely\b", "at full resolution"),
    Term(r"\ba machine among others\b", "shared host"),
    Term(r"\bcrowd(ed|ing|s)?\b", "contended, contention"),
    Term(r"\b(a|the) keeper\b", "supervisor"),
    Term(r"\brepeatable\.", "may be repeated"),
    Term(r"\bverbs?\b", "command"),
    Term(r"\bput down to\b", "attributed to", (r"\*put down to\*",)),
    Term(r"\bone gets\b", "available"),
    Term(r"\bin the manner of\b", "compatibility mode"),
    Term(r"\bhold(s)? .{1,40} to (its|their|the) truth\b", "verify"),
)


def hits(text: str) -> list[tuple[int, str, str]]:
    """Returns (line, text of the hit, term to use) for each discouraged word outside code."""
    found = []
    for term in TERMS:
        for match in re.finditer(term.pattern, text, re.I):
            around = text[max(0, match.start() - 40) : match.end() + 40]
            if not any(re.search(context, around, re.I) for context in term.allowed):
                line = text.count("\n", 0, match.start()) + 1
                found.append((line, match[0], term.use))
    return sorted(found)
