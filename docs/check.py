#!/usr/bin/env python3
"""Checks the documentation: every relative link and anchor leads somewhere, and
every test that docs/failures.md names exists. Run by hand; needs nothing."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*```.*?^\s*```\s*$", re.MULTILINE | re.DOTALL)


def pages():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.split("\n") if name]


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text())
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", text, re.MULTILINE):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def wrong_links(page):
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        if not linked.exists():
            yield f"{target} does not exist"
        elif anchor and (linked.suffix != ".md" or anchor not in anchors(linked)):
            yield f"{target} has no such heading"


def missing_tests(page):
    """Names of tests that the page tells and that are no function of any test, and
    rows of its tables that name neither a test nor a reason."""
    code = "\n".join(
        path.read_text() for folder in ("crates", "fuzz")
        for path in sorted((ROOT / folder).rglob("*.rs")))
    # A test is a function, or a case of a suite by its name.
    functions = set(re.findall(r"\bfn ([a-z0-9_]+)", code))
    functions |= set(re.findall(r"(?:\bcase|Case::new)\(\s*\"([a-z0-9_]+)\"", code))
    text = page.read_text()
    for name in sorted(set(re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+){2,})`", text))):
        if name not in functions:
            yield f"the test {name} does not exist"
    for row in re.findall(r"^\| (?!what happens)(.+) \|$", text, re.MULTILINE):
        cells = re.split(r"(?<!\\) \| ", row)
        if len(cells) != 2 or len(cells[1]) < 20:
            yield f"a row without an answer: {row[:60]}"


def main():
    faults = [(page, fault) for page in pages() for fault in wrong_links(page)]
    failures = ROOT / "docs" / "failures.md"
    faults += [(failures, fault) for fault in missing_tests(failures)]
    for page, fault in faults:
        print(f"{page.relative_to(ROOT)}: {fault}")
    print(f"{len(pages())} pages, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
