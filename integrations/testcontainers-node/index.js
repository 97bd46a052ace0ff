// A service behind an emulated link, for Testcontainers. Its image has the command `ackclock` and `curl`.

const { randomBytes } = require("node:crypto");

const CONTROL = 8474;

/** Command line of a container: a link around the command, whose port is reached from outside. */
function linkArguments(options, command, port) {
  return ["ackclock", "link", ...options, "--publish", `0.0.0.0:${port}`, "--control", String(CONTROL), "--", ...command];
}

/** Command line of `curl` in the container for a request to the link's control. */
function curl(token, method, path, body) {
  const words = ["curl", "--silent", "--show-error", "--request", method, `http://127.0.0.1:${CONTROL}${path}`];
  words.push("--header", `Authorization: Bearer ${token}`, "--header", "Content-Type: application/json");
  if (body !== undefined) words.push("--data", JSON.stringify(body));
  return words;
}

/** The link of a started container, asked from inside it, because the control is at a loopback address. */
class Link {
  constructor(exec, token) {
    this.exec = exec;
    this.token = token;
  }

  async ask(method, path, body) {
    const { output, exitCode } = await this.exec(curl(this.token, method, path, body));
    if (exitCode !== 0) throw new Error(`${method} ${path}: ${output.trim()}`);
    const said = JSON.parse(output);
    if (said.error !== undefined) throw new Error(`${method} ${path}: ${said.error}`);
    return said;
  }

  conditions() {
    return this.ask("GET", "/link");
  }

  set(conditions) {
    return this.ask("PATCH", "/link", conditions);
  }

  outage(time, { direction = "both", drop = false } = {}) {
    return this.ask("POST", "/outage", { for: time, direction, drop });
  }

  fault(fault, { only = [], for: time } = {}) {
    return this.ask("POST", "/faults", { fault, only, ...(time ? { for: time } : {}) });
  }

  mend() {
    return this.ask("DELETE", "/faults");
  }

  results() {
    return this.ask("GET", "/results");
  }
}

/** The container of a service behind a link, not started. */
function containerBehindLink({ image, command, port, options = ["--profile", "3g"], token }) {
  const { GenericContainer } = require("testcontainers");
  class LinkContainer extends GenericContainer {
    constructor() {
      super(image);
      // Testcontainers has no method for devices, and older versions have none for security options.
      this.hostConfig.SecurityOpt = ["apparmor=unconfined"];
      this.hostConfig.Devices = [
        { PathOnHost: "/dev/net/tun", PathInContainer: "/dev/net/tun", CgroupPermissions: "rwm" },
      ];
    }
  }
  return new LinkContainer()
    .withCommand(linkArguments(options, command, port))
    .withEnvironment({ ACKCLOCK_TOKEN: token })
    .withExposedPorts(port)
    .withAddedCapabilities("SYS_ADMIN", "NET_ADMIN");
}

/** Starts a service behind a link; resolves to its container, its address on this machine and its link. */
async function startBehindLink(service) {
  const token = randomBytes(16).toString("hex");
  const container = await containerBehindLink({ ...service, token }).start();
  const address = `${container.getHost()}:${container.getMappedPort(service.port)}`;
  return { container, address, link: new Link((words) => container.exec(words), token) };
}

module.exports = { Link, containerBehindLink, curl, linkArguments, startBehindLink };
