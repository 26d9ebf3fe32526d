"""Prints values that are in the ledger, for the parameters of questions."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    rows = json.load(file)
if len(rows) < 20:
    sys.exit(f"the simulated ledger has {len(rows)} subscriptions only")


def values(name):
    return sorted({row[name] for row in rows if row[name] is not None})


print(
    json.dumps(
        {
            "owner": values("app_account_token"),
            "subscription": values("original_transaction_id"),
            "id": values("original_transaction_id"),
            "product": values("product_id"),
            "environment": ["Sandbox"],
            "at": ["2025-06-01", "2025-03-01T12:00:00Z", "1764547200000"],
            "from": ["2025-01-01"],
            "to": ["2025-07-01"],
            "zone": ["UTC", "Pacific/Kiritimati"],
            "after": [0, 3],
            "epoch": [1],
            "known_at": ["2100-01-01"],
            "known_at_position": [100, 200],
            "position": [1, 2, 3],
        }
    )
)
