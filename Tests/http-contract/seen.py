"""Fails unless each operation of the document was answered with success at least once."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    seen = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    document = json.load(file)

missing = []
for path, item in document["paths"].items():
    if path == "/openapi.json":
        # This is where the document came from.
        continue
    for method in item:
        name = f"{method.upper()} {path}"
        statuses = {key.rsplit(" ", 1)[1]: n for key, n in seen.items() if key.startswith(name + " ")}
        print(name, " ".join(f"{status}:{n}" for status, n in sorted(statuses.items())))
        # Most are made up; those learned from the evidence of events are duplicates.
        wanted = "400" if path == "/v1/notifications" else "200"
        if path == "/v1/mass-extensions/{request}":
            # There are none.
            wanted = "404"
        if method == "post" and path.startswith(("/v1/extensions", "/v1/mass-extensions")):
            # They change subscriptions at Apple, so an operator's token and Apple are needed; the
            # tests in Swift try them with both. Made-up requests must be turned away.
            wanted = "403"
        if wanted not in statuses:
            missing.append(name)
if missing:
    sys.exit("never answered with success: " + ", ".join(missing))
