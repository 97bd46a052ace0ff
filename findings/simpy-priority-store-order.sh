#!/bin/bash
# Guess:   A PriorityStore of SimPy, as the queue of a link with priorities, keeps the order of arrival among packets of
#          the same priority, as PriorityResource does among requests.
# Found:   It does not: it is a heap of items that are compared by priority alone. Ten packets of one priority leave as
#          0 2 6 9 8 ... and a model of TCP above it sees reordering that no priority queue makes. An item that also
#          compares a counter keeps the order.
# Version: simpy 4.1.2.
# Source:  ten items of one priority through a store, and ten requests of one priority at a resource.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: python3 is needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" -q install simpy==4.1.2 2>/dev/null || { echo "skipped: simpy cannot be had"; exit 77; }
"$folder/venv/bin/python" - <<'CODE'
import sys
import simpy

environment = simpy.Environment()
def through_store(priority, order):
    store = simpy.PriorityStore(environment)
    for number in range(10):
        yield store.put(simpy.PriorityItem(priority(number), number))
    for _ in range(10):
        order.append((yield store.get()).item)
resource = simpy.PriorityResource(environment)
def request(number, order):
    with resource.request(priority=0) as turn:
        yield turn
        order.append(number)
        yield environment.timeout(1)
plain, counted, requests = [], [], []
environment.process(through_store(lambda number: 0, plain))
environment.process(through_store(lambda number: (0, number), counted))
for number in range(10):
    environment.process(request(number, requests))
environment.run()
print("seen: PriorityStore", *plain)
print("seen: PriorityStore with a counter", *counted)
print("seen: PriorityResource", *requests)
arrived = list(range(10))
sys.exit(0 if plain != arrived and counted == requests == arrived else 1)
CODE
