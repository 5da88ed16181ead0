// A driver whose resources are a directory with a mark and a unit of the runtime, by the rules of all drivers. What
// `npm run new -- <kind> --driver` writes is of this form.
import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs';
import { lstat, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ResourceDriver } from '../../core/driver';
import type { RuntimeDriver } from '../../drivers/runtime';
import { openLocalRuntime } from '../../drivers/runtime/local';
import { describeResourceDriver, type ResourceFixture } from './resource_driver';

interface HostedOptions {
  directory: string;
  /** From the root of the project, and the function in it that opens the driver. */
  module: string;
  factory: string;
}

interface Running {
  /** null where it does not run. */
  pid: number | null;
}

type Hosted<S, O> = ResourceDriver<S, O> & { runtime(): Promise<RuntimeDriver> };
type Factory<S, O> = (host: { runtime: RuntimeDriver; directory: string }) => ResourceDriver<S, O>;

/** Opens its runtime with the first call. */
export function openHosted<S, O>({ directory, module, factory }: HostedOptions): Hosted<S, O> {
  let opened: Promise<RuntimeDriver> | undefined;
  const runtime = () =>
    (opened ??= openLocalRuntime({
      directory: path.join(directory, 'units'),
      ports: [24_000, 24_001],
      sandbox: 'auto',
      tenantUidBase: 700_000,
    }));
  const driver = async () => {
    const { [factory]: open } = (await import(path.resolve(__dirname, '../..', module))) as Record<
      string,
      Factory<S, O>
    >;
    return (open as Factory<S, O>)({ runtime: await runtime(), directory: resourcesIn(directory) });
  };
  return {
    name: path.basename(module, '.ts'),
    runtime,
    fingerprint: async (ctx) => (await driver()).fingerprint(ctx),
    observe: async (r, ctx) => (await driver()).observe(r, ctx),
    ensure: async (r, obs, ctx) => (await driver()).ensure(r, obs, ctx),
    remove: async (r, obs, ctx) => (await driver()).remove(r, obs, ctx),
    async *list(ctx) {
      yield* (await driver()).list(ctx);
    },
  };
}

const resourcesIn = (directory: string): string => path.join(directory, 'resources');

/** @param specs a spec, and one that its resources can be brought to */
export function describeHostedDriver<S, O extends Running>(
  recipe: Omit<HostedOptions, 'directory'>,
  specs: { spec: S; changed: S },
): void {
  describeResourceDriver<S, O>(recipe.module, async (): Promise<ResourceFixture<S, O>> => {
    const directory = mkdtempSync(path.join(os.tmpdir(), 'hosted-'));
    chmodSync(directory, 0o711);
    mkdirSync(resourcesIn(directory), { mode: 0o711 });
    const options = { ...recipe, directory };
    const driver = openHosted<S, O>(options);
    const runtime = await driver.runtime();
    const place = (id: string) => path.join(resourcesIn(directory), id);
    const runs = (observed: O) => Promise.resolve(expect(observed).toEqual({ pid: expect.any(Number) as number }));
    return {
      driver,
      ...specs,
      recipe: { module: 'test/conformance/hosted.ts', factory: 'openHosted', options },
      snapshot: async () => ({
        files: await filesOf(resourcesIn(directory)),
        units: (await readdir(path.join(directory, 'units'))).filter((name) => !name.startsWith('.trial-')),
      }),
      use: runs,
      check: runs,
      drifts: { 'its process was killed': (id) => killUnit(runtime, id) },
      kills: { sample: 4, random: 1 },
      plantForeign: (id) => writeFile(place(id), 'not yours'),
      uprootForeign: (id) => rm(place(id)),
      close: async () => {
        expect(await runtime.list()).toEqual([]);
        await runtime.close();
        await rm(directory, { recursive: true });
      },
    };
  });
}

async function killUnit(runtime: RuntimeDriver, id: string): Promise<void> {
  const handle = await runtime.find(id);
  if (handle === null) throw new Error(`nothing runs for ${id}`);
  process.kill(handle.pid as number, 'SIGKILL');
  while ((await runtime.inspect(handle)).state === 'running') await sleep(20);
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
