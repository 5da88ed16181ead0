// Ports of the host that the kernel leads into networks of root: at 127.0.0.1, and at its other addresses for those
// sources that are allowed. A machine beside the host stands for the world.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { run } from '../../../core/process/command';
import { driverContext } from '../../../core/driver';
import { HOST_NETWORK } from '../../../core/outbound/network_location';
import { freePort } from '../processes/free_port';
import { ask, openNetworkTrial, output, type NetworkTrial } from '../networks/network_trial';
import { makePair } from '../processes/outside_host';
import { kill } from '../processes/processes';
import { until } from '../builds/runtime';

const VISITOR = {
  name: `platform-test-${process.pid}-v`,
  link: `vis${process.pid}`,
  here: '192.88.97.1',
  address: '192.88.97.2',
};
const NETWORK = '192.88.97.0/24';
const UNIT = 'dbs_open.server';

/** Connects, sends what it is given, and prints what comes and how it ends. */
const TALK = `const socket = require('net').connect(Number(process.argv[2]), process.argv[1]);
socket.on('data', (bytes) => console.log(String(bytes).trim()));
process.stdin.on('data', (bytes) => socket.write(bytes));
socket.on('error', (error) => (console.log(error.code), process.exit()));
socket.on('close', () => (console.log('closed'), process.exit()));`;

const ECHO = `
require("net")
  .createServer((socket) => socket.on("error", () => {}).on("data", (bytes) => socket.write(bytes)).write("hello"))
  .listen(Number(process.argv[1]), "127.0.0.1", () => console.log("listens"))`;

export function forwardedPortCases(): void {
  let one: NetworkTrial;
  let port: number;
  beforeAll(async () => {
    // The last of the default routes: nothing uses it, and the host reaches the world by it.
    await makePair(VISITOR, [`ip route add default via ${VISITOR.address} dev ${VISITOR.link} metric 4000000001`]);
    one = await openNetworkTrial();
    port = await freePort();
    await one.trial.start(
      one.trial.spec(UNIT, `exec node -e '${ECHO}' ${port}`, { network: 'prj_a', published_port: port }),
    );
    await one.trial.printed(UNIT, 'listens');
  }, 60_000);
  afterAll(async () => {
    await one?.close();
    await run('sh', ['-c', `ip netns del ${VISITOR.name}; ip link del ${VISITOR.link} 2>/dev/null; :`], ctx());
  }, 60_000);
  afterEach(() => expect(one.trial.errors.splice(0)).toEqual([]));

  const ctx = () => driverContext(20_000);
  const allow = (...sources: string[]): Promise<void> =>
    one.trial.runtime.forwardPort(UNIT, sources.length ? { port, sources, addresses: null } : null, ctx());
  const talkers: ChildProcess[] = [];
  const heard = new WeakMap<ChildProcess, string[]>();
  afterEach(() => Promise.all(talkers.splice(0).map(kill)));
  /** From the machine beside the host, or from the host. */
  const talk = (from: 'outside' | 'host'): ChildProcess => {
    const program = [process.execPath, '-e', TALK, VISITOR.here, String(port)];
    // ip-netns(8) would keep what is mounted.
    const [name = '', ...rest] =
      from === 'host' ? program : ['nsenter', `--net=/run/netns/${VISITOR.name}`, ...program];
    const talker = spawn(name, rest);
    talkers.push(talker);
    const lines: string[] = [];
    heard.set(talker, lines);
    talker.stdout.on('data', (bytes) => lines.push(String(bytes)));
    talker.stdin.on('error', () => undefined); // it has ended
    return talker;
  };
  /** Waits until it has printed the word. */
  const hears = (talker: ChildProcess, word: string): Promise<void> =>
    until(() => heard.get(talker)!.join('').includes(word));
  const echoes = (talker: ChildProcess, line: string): Promise<void> => {
    talker.stdin!.write(line);
    return hears(talker, line);
  };
  /** Its next packet is answered by a reset; one may be on its way already. */
  const isReset = (talker: ChildProcess): Promise<void> => {
    talker.stdin!.write('more');
    return hears(talker, 'ECONNRESET');
  };
  const table = (): string => output('nft', 'list', 'table', 'inet', `platform_${one.networks.tag}`);
  const removeRules = async (): Promise<void> => {
    output('nft', 'delete', 'table', 'inet', `platform_${one.networks.tag}`);
    await until(() => table().includes('jump'));
  };

  test('programs of the host are led by the kernel, whatever the program that has the port does', async () => {
    const [pid] = readFileSync(path.join(one.options.directory, '.published/process'), 'utf8').split(' ');
    process.kill(Number(pid), 'SIGSTOP');
    try {
      expect(await ask(HOST_NETWORK, port)).toBe('hello');
      await removeRules();
      expect(await ask(HOST_NETWORK, port)).toBe('hello');
    } finally {
      process.kill(Number(pid), 'SIGCONT');
    }
  });

  test('sources that are allowed are led in, and what is open ends where they are no longer', async () => {
    for (const from of ['outside', 'host'] as const) {
      await hears(talk(from), 'ECONNREFUSED');
      await allow('198.51.100.0/24', NETWORK);
      const open = talk(from);
      await hears(open, 'hello');
      await echoes(open, 'still');
      await allow('198.51.100.0/24');
      await isReset(open);
      await hears(talk(from), 'ECONNREFUSED');
      expect(await ask(HOST_NETWORK, port)).toBe('hello');
      await allow();
    }
  });

  test('programs of other projects are led in nowhere', async () => {
    await allow(NETWORK, '10.246.0.0/24');
    const at = `${VISITOR.here}:${port}`;
    expect(await one.reach('ins_b', 'prj_b', [at])).toEqual({ [at]: 'ECONNREFUSED' });
    await one.destroy('ins_b');
    await allow();
  });

  test('connections stay while the control plane and the rules come and go', async () => {
    await allow(NETWORK);
    const all = [talk('outside'), talk('host')];
    for (const open of all) await hears(open, 'hello');
    await one.reopenNetworks();
    for (const open of all) await echoes(open, 'reopened');
    await removeRules();
    for (const open of all) await echoes(open, 'loaded again');
    await hears(talk('outside'), 'hello');
    expect(await one.trial.runtime.isForwarded(UNIT, { port, sources: [NETWORK], addresses: null })).toBe(true);
    await allow();
    for (const open of all) await isReset(open);
  });

  test('a change that finds the rules removed loads those that are wanted now', async () => {
    await allow(NETWORK);
    output('nft', 'delete', 'table', 'inet', `platform_${one.networks.tag}`);
    await allow('198.51.100.0/24');
    await hears(talk('outside'), 'ECONNREFUSED');
    await allow(NETWORK);
    await hears(talk('outside'), 'hello');
    output('nft', 'delete', 'table', 'inet', `platform_${one.networks.tag}`);
    await allow();
    await hears(talk('outside'), 'ECONNREFUSED');
    expect(await one.networks.forwards!.find(UNIT)).toBeNull();
  });

  test('nothing is led to a unit that is gone', async () => {
    await allow(NETWORK);
    const open = talk('outside');
    await hears(open, 'hello');
    await one.destroy(UNIT);
    expect(await one.networks.forwards!.find(UNIT)).toBeNull();
    await hears(talk('outside'), 'ECONNREFUSED');
  });
}
