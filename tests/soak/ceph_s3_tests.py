"""A pytest plugin for ceph_s3_tests.sh: every test in one line as it ends, and at the end how many failed for which reason.

`ceph_s3_tests.known` names the reasons. A test that fails for none of them is a fault of ours, and fails the run.
"""

import collections
import os
import pathlib
import re

KNOWN = pathlib.Path(__file__).with_suffix(".known")
RANK = ["passed", "skipped", "failed", "error"]

outcomes = {}


def known():
    for line in KNOWN.read_text().splitlines():
        if line and not line.startswith("#"):
            group, pattern = line.split("\t")
            yield group, re.compile(pattern)


def reason(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return " ".join(text.split())[:300]


def pytest_runtest_logreport(report):
    outcome = "error" if report.failed and report.when != "call" else report.outcome
    name = report.nodeid.rpartition("/")[2]
    before = outcomes.get(name, ("passed", ""))
    if RANK.index(outcome) > RANK.index(before[0]):
        outcomes[name] = (outcome, reason(report))
    else:
        outcomes[name] = before
    if report.when == "teardown":
        with open(os.environ["MW_OUTCOMES"], "a") as table:
            print(name, *outcomes[name], sep="\t", file=table)


def group_of(name, why, known):
    text = f"{name.partition('::')[2]}: {why}"
    return next((group for group, pattern in known if pattern.search(text) or pattern.search(name)), None)


def sorted_out():
    counts, faults, groups = collections.Counter(), [], list(known())
    for name, (outcome, why) in outcomes.items():
        if outcome in ("failed", "error"):
            outcome = group_of(name, why, groups)
            if outcome is None:
                faults.append(f"{name}: {why}")
                continue
        counts[outcome] += 1
    return counts, faults


def pytest_terminal_summary(terminalreporter):
    counts, faults = sorted_out()
    for group, count in counts.most_common():
        terminalreporter.write_line(f"{count:5} {group}")
    for fault in faults:
        terminalreporter.write_line(f"FAULT {fault}")


def pytest_sessionfinish(session):
    """What fails for a known reason does not fail the run."""
    if session.exitstatus == 1 and not sorted_out()[1]:
        session.exitstatus = 0
