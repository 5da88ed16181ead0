// SIGKILL of a control plane at each program that it starts while it makes and removes networks: of itself alone, whose
// scripts go on, and of all that it has started. What it leaves, the next one adopts or removes.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import { isAnswering } from '../../../core/outbound/network_location';
import { openNetworks, type NetworkOptions } from '../../../drivers/network/open';
import { hostServer, leftOversOf, output } from './network_trial';
import { processesWith, spawnProgram } from '../processes/processes';
import { until } from '../builds/runtime';

const PROGRAMS = ['ip', 'nft', 'unshare', 'pasta'];
const NAME = 'prj_killed';
const UNIT = 'dbs_killed.server';
const PORT = 30_001;
const FORWARD = { network: NAME, port: PORT, sources: ['198.51.100.0/24'], addresses: null };
const STEPS_MAX = 100;
const MS = 20_000;

// A trial network is made and removed by openNetworks itself.
const CHILD = `
const { writeFileSync } = require('node:fs');
const { openNetworks } = require('./drivers/network/open');
const { driverContext } = require('./core/driver');
const [options, victim, group] = process.argv.slice(1);
writeFileSync(victim, (group ? '-' : '') + process.pid);
async function work() {
  const networks = await openNetworks({ ...JSON.parse(options), memberOf: async () => null });
  const { location } = await networks.ensure('${NAME}', driverContext(${MS}));
  await networks.forwards?.publish(new Map([[${PORT}, location]]), driverContext(${MS}));
  await networks.forwards?.set('${UNIT}', ${JSON.stringify(FORWARD)}, driverContext(${MS}));
  await networks.remove('${NAME}', driverContext(${MS}));
}
work().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });`;

interface Place {
  options: NetworkOptions;
  bin: string;
}

export function networkKillCases(): void {
  let service: Awaited<ReturnType<typeof hostServer>>;
  beforeAll(async () => void (service = await hostServer('127.0.0.1')));
  afterAll(() => void service?.server.close());

  test('killed at any step, a control plane leaves nothing that its successor does not adopt or remove', async () => {
    const directory = mkdtempSync('/tmp/platform-net-');
    const place: Place = {
      bin: path.join(directory, '.bin'),
      options: {
        directory: path.join(directory, 'networks'),
        block: '10.243.0.0/24',
        openings: {
          resolvers: [],
          loopbackResolver: null,
          services: [service.port],
          databases: [30_000, 30_999],
          allowed: [],
        },
        memberOf: () => Promise.resolve(null),
      },
    };
    mkdirSync(place.bin);
    for (const program of PROGRAMS) writeWrapper(place, program);
    let at = 1;
    for (; at < STEPS_MAX && (await killedAt(place, at)); at++) await succeed(place, at);
    // Of a trial and of a network; as root each takes more than ten.
    expect(at).toBeGreaterThan(process.getuid?.() === 0 ? 20 : 5);
    expect(at).toBeLessThan(STEPS_MAX);
    rmSync(directory, { recursive: true, force: true });
  }, 240_000);
}

/** It counts the calls of all programs, and kills at the one that is wanted, before it does its work. */
function writeWrapper({ bin }: Place, program: string): void {
  const real = spawnSync('/bin/sh', ['-c', `PATH=$PATH:/usr/sbin:/sbin; command -v ${program}`], { encoding: 'utf8' });
  const text = `#!/bin/sh
count=$(($(cat ${bin}/count) + 1))
echo $count > ${bin}/count
[ $count != "$(cat ${bin}/at)" ] || kill -9 "$(cat ${bin}/victim)"
exec ${real.stdout.trim() || '/bin/false'} "$@"
`;
  writeFileSync(path.join(bin, program), text);
  chmodSync(path.join(bin, program), 0o755);
}

/** false: it came to its end before. */
async function killedAt({ bin, options }: Place, at: number): Promise<boolean> {
  writeFileSync(path.join(bin, 'count'), '0');
  writeFileSync(path.join(bin, 'at'), String(at));
  const PATH = `${bin}:${process.env.PATH}`;
  const args = [JSON.stringify(options), path.join(bin, 'victim'), ...(at % 2 ? [] : ['group'])];
  const child = spawnProgram(CHILD, args, { env: { ...process.env, PATH }, detached: true });
  let said = '';
  child.stderr!.on('data', (text) => (said += String(text)));
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.once('exit', (...end) => resolve(end)),
  );
  if (signal === null && code !== 0) throw new Error(said);
  return signal === 'SIGKILL';
}

async function succeed({ options }: Place, at: number): Promise<void> {
  // Scripts of the killed one come to their end long before a successor has started.
  await until(() => processesWith('10.243.0.').length === 0);
  const networks = await openNetworks(options);
  if (at % 3 === 0) {
    const { location } = await networks.ensure(NAME, driverContext(MS));
    expect(await isAnswering(location)).toBe(true);
  }
  for (const name of await networks.list()) await networks.remove(name, driverContext(MS));
  expect(await networks.list()).toEqual([]);
  expect((await networks.forwards?.find(UNIT)) ?? null).toBeNull();
  await networks.close();
  await until(() => leftOversOf(networks, options.directory).length === 0);
  if (process.getuid?.() === 0) expect(output('nft', 'list', 'tables')).not.toContain(networks.tag);
}
