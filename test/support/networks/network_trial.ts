// Units in networks of their own, and what they reach.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { driverContext } from '../../../core/driver';
import { connectInto, type NetworkLocation } from '../../../core/outbound/network_location';
import type { NetworkDriver } from '../../../drivers/network';
import { openNetworks, type NetworkOptions } from '../../../drivers/network/open';
import { memberOfNetwork } from '../../../drivers/runtime/network_members';
import type { UnitSpec } from '../../../drivers/runtime';
import { retryCheck } from '../wait_for';
import { openTrial, until, withinMs, type Trial } from '../builds/runtime';

export interface NetworkTrial {
  trial: Trial;
  networks: NetworkDriver;
  options: NetworkOptions;
  /** Starts a server in a network, which answers with its name and the address that it sees; waits until it listens. */
  serve(unitId: string, network: string, port: number, rest?: Partial<UnitSpec>): Promise<NetworkLocation>;
  /** What a program in the network gets from each target, `address:port`: its answer, or an error code. */
  reach(unitId: string, network: string | undefined, targets: string[]): Promise<Record<string, string>>;
  /** Runs a shell command in the network, and answers what it prints. */
  shell(unitId: string, network: string | undefined, command: string): Promise<string[]>;
  destroy(...unitIds: string[]): Promise<void>;
  /** As a control plane that takes over. */
  reopenNetworks(): Promise<void>;
  /** What is left of networks of this installation on the host. */
  leftOvers(): string[];
  close(): Promise<void>;
}

const BLOCK = '10.246.0.0/24';

export async function openNetworkTrial(openings: Partial<NetworkOptions['openings']> = {}): Promise<NetworkTrial> {
  const directory = mkdtempSync('/tmp/platform-net-');
  let units = '';
  const options: NetworkOptions = {
    directory,
    block: BLOCK,
    openings: {
      resolvers: [],
      loopbackResolver: null,
      services: [],
      databases: [30_000, 30_999],
      allowed: [],
      ...openings,
    },
    checkRulesEveryMs: 500,
    memberOf: (name) => memberOfNetwork(units, name),
  };
  const opened = { driver: await openNetworks(options), isolated: 'required' as const };
  const trial = await openTrial({ sandbox: 'bubblewrap', networks: opened });
  units = trial.options.directory;
  const found: NetworkTrial = {
    trial,
    networks: opened.driver,
    options,
    async serve(unitId, network, port, rest = {}) {
      await trial.start(trial.spec(unitId, `exec node -e '${SERVE}' ${unitId} ${port}`, { network, ...rest }));
      await trial.printed(unitId, 'listens');
      return trial.runtime.locationOf(unitId);
    },
    async reach(unitId, network, targets) {
      const lines = await found.shell(unitId, network, `exec node -e '${REACH}' ${targets.join(' ')}`);
      return JSON.parse(lines.join('\n')) as Record<string, string>;
    },
    async shell(unitId, network, command) {
      await trial.run(trial.spec(unitId, command, { network }));
      return trial.lines(unitId);
    },
    async destroy(...unitIds) {
      // The kernel may hold a disk a moment longer than the processes on it.
      for (const id of unitIds) await retryCheck(() => trial.runtime.destroy(id, driverContext(withinMs)));
    },
    async reopenNetworks() {
      await found.networks.close();
      found.networks = opened.driver = await openNetworks(options);
      await trial.reopen();
    },
    leftOvers: () => leftOversOf(opened.driver, directory),
    async close() {
      await trial.close();
      await until(() => found.leftOvers().length === 0);
      await opened.driver.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return found;
}

type HostServer = Awaited<ReturnType<typeof hostServer>>;

/** One for all tests of a suite, with a server of the host that is there for tenants too. */
export function useNetworkTrial(use: (one: NetworkTrial, service: HostServer) => void): void {
  let one: NetworkTrial | undefined;
  let service: HostServer | undefined;
  beforeAll(async () => {
    service = await hostServer('127.0.0.1');
    one = await openNetworkTrial({ services: [service.port] });
    use(one, service);
  }, 60_000);
  afterEach(() => expect(one?.trial.errors).toEqual([]));
  afterAll(async () => {
    await one?.close();
    service?.server.close();
  }, 60_000);
}

const SERVE = `
require("net")
  .createServer((socket) => socket.on("error", () => {}).end(process.argv[1] + " " + socket.remoteAddress))
  .listen(Number(process.argv[2]), "127.0.0.1", () => console.log("listens"))`;

/** Connects to each of its arguments, `address:port`, and prints what they say, or the code of the error. */
export const REACH = `
const net = require("net"), found = {}, targets = process.argv.slice(1);
for (const target of targets) {
  const at = target.lastIndexOf(":"), socket = net.connect(Number(target.slice(at + 1)), target.slice(0, at));
  const end = (word) => {
    if (found[target] !== undefined) return;
    found[target] = word;
    socket.destroy();
    if (Object.keys(found).length === targets.length) console.log(JSON.stringify(found));
  };
  socket.on("data", (bytes) => end(String(bytes)));
  socket.on("error", (error) => end(error.code));
  socket.setTimeout(6000, () => end("ETIMEDOUT"));
}`;

/** What a server at the port of a location says: its first bytes, or an error code. */
export function ask(location: NetworkLocation, port: number): Promise<string> {
  return new Promise((resolve) => {
    const onFailed = (error: NodeJS.ErrnoException): void => resolve(error.code ?? error.message);
    const onConnected = (socket: Socket): void => {
      socket.once('data', (bytes) => resolve(String(bytes)));
      socket.once('error', onFailed);
      socket.once('close', () => resolve('closed'));
    };
    connectInto(location, port, { onConnected, onFailed });
  });
}

/** A server of the host, which says that it is reached. */
export async function hostServer(host: string): Promise<{ port: number; server: Server }> {
  const server = createServer((socket) => socket.on('error', () => undefined).end('the host'));
  await new Promise<void>((resolve) => server.listen({ host, port: 0 }, resolve));
  return { port: (server.address() as AddressInfo).port, server };
}

/** Output of a program; empty where it fails. */
export function output(program: string, ...args: string[]): string {
  return spawnSync(program, args, { encoding: 'utf8' }).stdout ?? '';
}

/** Of networks of an installation on this host. */
export function leftOversOf(networks: NetworkDriver, directory: string): string[] {
  const { tag } = networks;
  const lines = [output('ip', 'netns', 'list'), output('ip', '-o', 'link'), output('ps', '-eo', 'args')].join('\n');
  return lines.split('\n').filter((line) => line.includes(tag) || line.includes(`${directory}/`));
}
