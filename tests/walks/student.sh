# A student runs a first scenario and reads what was simulated in the paragraph about the runs.
cp "$SCENARIOS/first.toml" .
ackclock run first.toml --report first.html
python3 - << 'PYTHON'
import re

page = open("first.html", encoding="utf-8").read()
text = re.sub(r"<[^>]+>", "", re.search(r'<p class="about">(.*?)</p>', page, re.S)[1])
print(" ".join(text.split()))
PYTHON
ackclock list regulators | head -4
ackclock run first.toml --set edge.bufer=10p || echo "status: $?"
