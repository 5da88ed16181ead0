/** @tier both @quarter 4 @covers drivers/endpoint */
// What listens for endpoints, by the rules of all drivers. Both kinds have drivers/endpoint/listener.ts in common.
import { chmodSync, existsSync, mkdtempSync } from 'node:fs';
import { lstat, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { ObservedListener, SpreadSpec } from '../../../drivers/endpoint';
import { claimPorts } from '../../support/processes/claimed_ports';
import { processesWith, signalAll } from '../../support/processes/processes';
import { describeResourceDriver, type ResourceFixture } from '../../conformance/resource_driver';
import { openSpreading } from '../../conformance/spreading';

const present = existsSync('/usr/sbin/haproxy') || Boolean(process.env.CI);
if (present) describeResourceDriver('haproxy', makeFixture);
else describe.skip('haproxy (not installed)', () => test.todo('the conformance suite'));

async function makeFixture(): Promise<ResourceFixture<SpreadSpec, ObservedListener>> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'endpoints-'));
  chmodSync(directory, 0o711);
  const ports = await claimPorts();
  const options = { directory, firstPort: ports.first, ports: ports.count };
  const driver = openSpreading(options);
  await mkdir(path.join(directory, 'endpoints'), { mode: 0o711 });
  await driver.runtime();
  const spec: SpreadSpec = {
    tenant: 5,
    port: 0,
    running: true,
    allowed_sources: [],
    engine: 'redis',
    connections: 50,
    servers: [],
  };
  const place = (id: string) => path.join(directory, 'endpoints', id);
  const processes = () =>
    processesWith(`${directory}/endpoints/`)
      .filter(({ args }) => args.startsWith('/usr/sbin/haproxy'))
      .map(({ pid }) => pid);
  const running = (observed: ObservedListener) =>
    Promise.resolve(expect(observed).toEqual({ state: 'running', reason: null }));
  return {
    driver,
    spec,
    changed: { ...spec, servers: [{ id: 'rep_one', port: 7 }] },
    recipe: { module: 'test/conformance/spreading.ts', factory: 'openSpreading', options },
    snapshot: async () => ({
      files: await filesOf(path.join(directory, 'endpoints')),
      units: await unitsOf(path.join(directory, 'units')),
      processes: processes(),
    }),
    use: running,
    check: running,
    drifts: {
      'its process was killed': (id) => {
        signalAll(
          processesWith(`${place(id)}/`).flatMap(({ pid, args }) =>
            args.startsWith('/usr/sbin/haproxy') ? [pid] : [],
          ),
        );
        return ended(place(id));
      },
      'its process and all around it were killed': (id) => {
        signalAll(processesWith(`res_${id.slice(4)}.server`).map(({ pid }) => pid));
        return ended(place(id));
      },
    },
    kills: { sample: 3, random: 1 },
    plantForeign: (id) => writeFile(place(id), 'not yours'),
    uprootForeign: (id) => rm(place(id)),
    close: async () => {
      expect([processes(), await (await driver.runtime()).list()]).toEqual([[], []]);
      await driver.closed();
      await ports.release();
      await rm(directory, { recursive: true });
    },
  };
}

async function ended(place: string): Promise<void> {
  while (processesWith(`${place}/`).length) await new Promise((resolve) => setTimeout(resolve, 20));
  await new Promise((resolve) => setTimeout(resolve, 200));
}

// What a killed process tried the host with goes when the next one does.
async function unitsOf(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => !name.startsWith('.trial-'));
}

async function filesOf(directory: string): Promise<unknown> {
  const names = (await readdir(directory, { recursive: true })).sort();
  return Promise.all(
    names.map(async (name) => {
      const { ino, mode, size, mtimeMs } = await lstat(path.join(directory, name));
      return [name, ino, mode, size, mtimeMs];
    }),
  );
}
