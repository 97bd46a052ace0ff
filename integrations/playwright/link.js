// Client of the HTTP control of `ackclock link --control`.

class Link {
  /** @param {{ url?: string, token?: string }} options Default: $ACKCLOCK_CONTROL and $ACKCLOCK_TOKEN, which a link sets. */
  constructor({ url = process.env.ACKCLOCK_CONTROL, token = process.env.ACKCLOCK_TOKEN } = {}) {
    if (!url || !token) {
      throw new Error("no link is controlled here: run the tests as `ackclock link --profile 3g --control 0 -- npx playwright test`");
    }
    this.url = url;
    this.token = token;
  }

  async ask(method, path, body) {
    const answer = await fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const said = await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${said.error}`);
    return said;
  }

  /** Conditions in force: the keys of `[edge]`. */
  conditions() {
    return this.ask("GET", "/link");
  }

  /** Changes conditions, as `{ down: { rate: "1mbit" } }`; resolves to those in force. */
  set(conditions) {
    return this.ask("PATCH", "/link", conditions);
  }

  /** Interrupts the link for a time, as "3s". */
  outage(time, { direction = "both", drop = false } = {}) {
    return this.ask("POST", "/outage", { for: time, direction, drop });
  }

  /** Lets connections fail: "reset", "cut=up", "drop-first=2", "slow-close=5s". `only` are flows such as "tcp:5432". */
  fault(fault, { only = [], for: time } = {}) {
    return this.ask("POST", "/faults", { fault, only, ...(time ? { for: time } : {}) });
  }

  /** Ends all faults. */
  mend() {
    return this.ask("DELETE", "/faults");
  }

  /** Results so far, as of `ackclock link --json`. */
  results() {
    return this.ask("GET", "/results");
  }
}

module.exports = { Link };
