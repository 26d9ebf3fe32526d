"""Lets made-up requests meet real data, and notes which answers were seen.

Random ids are in no ledger, so that most questions would have an empty answer: about half of the
made-up values are replaced by ones that are there. Which half depends on the value alone, so that a
run with the same seed is the same run.
"""

import json
import os
import zlib
from collections import Counter

import schemathesis

KNOWN = json.loads(os.environ["SUBLEDGER_KNOWN"])
SEEN = Counter()


def pick(value, choices):
    """One of the choices, or None for about half of the values."""
    number = zlib.crc32(repr(value).encode())
    return None if number % 2 else choices[number // 2 % len(choices)]


def replaced(values):
    """The parameters, some of them with values that are in the ledger."""
    if not isinstance(values, dict):
        return values
    values = dict(values)
    for name, choices in KNOWN.items():
        if name in values:
            known = pick((name, values), choices)
            if known is not None:
                values[name] = known
    return values


@schemathesis.hook
def map_query(ctx, query):
    query = replaced(query)
    if isinstance(query, dict):
        # Waiting for what never comes would be all that a run does.
        wait = query.get("wait_ms")
        if isinstance(wait, int) and 50 < wait <= 30_000:
            query["wait_ms"] = 50
        elif "after" in query and ctx.operation.path == "/v1/entitlements":
            query.setdefault("wait_ms", 50)
        if query.get("after") and "events" in ctx.operation.path:
            # A position goes with its epoch.
            epoch = pick(("epoch", query["after"]), KNOWN["epoch"])
            if epoch is not None:
                query.setdefault("epoch", epoch)
        if "{id}" in ctx.operation.path:
            # The simulated subscriptions are all there.
            environment = pick(tuple(query.items()), KNOWN["environment"])
            if environment is not None:
                query.setdefault("environment", environment)
        # Both at once are refused, which is worth a try now and then, not always.
        both = [name for name in ("known_at", "known_at_position") if name in query]
        if len(both) == 2:
            unwanted = pick(tuple(query.items()), both)
            if unwanted is not None:
                del query[unwanted]
    return query


@schemathesis.hook
def map_path_parameters(ctx, path_parameters):
    return replaced(path_parameters)


@schemathesis.hook
def after_call(ctx, case, response):
    SEEN[f"{case.operation.method.upper()} {case.operation.path} {response.status_code}"] += 1
    with open(os.environ["SUBLEDGER_SEEN"], "w", encoding="utf-8") as file:
        json.dump(SEEN, file)
