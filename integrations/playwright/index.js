// Playwright's `test` with the fixture `link`. After each test the link has its conditions of before, and no faults.

const { test: base, expect } = require("@playwright/test");
const { Link } = require("./link.js");

const CHANGEABLE = ["rate", "delay", "loss"];

/** Conditions of both directions that can be set again. */
function changeable(conditions) {
  const of = (side) =>
    Object.fromEntries(CHANGEABLE.filter((key) => key in (side ?? {})).map((key) => [key, side[key]]));
  return { down: of(conditions.down), up: of(conditions.up) };
}

const test = base.extend({
  link: async ({}, use) => {
    const link = new Link();
    const before = changeable(await link.conditions());
    await use(link);
    await link.mend();
    await link.set(before);
  },
});

module.exports = { test, expect, Link };
