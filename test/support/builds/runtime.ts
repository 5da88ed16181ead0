// A runtime in a directory of its own, and units to run in it.
import { mkdirSync, mkdtempSync, chmodSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { retryCheck } from '../wait_for';
import { driverContext } from '../../../core/driver';
import type { Handle, RuntimeDriver, UnitSpec, UnitState } from '../../../drivers/runtime';
import { openLocalRuntime, type LocalRuntimeOptions } from '../../../drivers/runtime/local';

export type Exited = Extract<UnitState, { state: 'exited' }>;
export type Variant = Pick<LocalRuntimeOptions, 'sandbox' | 'limits' | 'networks' | 'disks'>;

export interface Trial {
  runtime: RuntimeDriver;
  options: LocalRuntimeOptions;
  /** Files of units lie below; others than the owner pass through. */
  root: string;
  errors: unknown[];
  /** The host has disks with a hard limit. */
  disks: boolean;
  /** A spec with small limits; its directory is `src`, which holds a file hello.txt. */
  spec(
    id: string,
    command: string,
    more?: Partial<Omit<UnitSpec, 'limits'>> & { limits?: Partial<UnitSpec['limits']> },
  ): UnitSpec;
  start(spec: UnitSpec): Promise<Handle>;
  /** Starts it, and waits for its end. */
  run(spec: UnitSpec): Promise<Exited>;
  ended(handle: Handle, withinMs?: number): Promise<Exited>;
  /** All lines so far. */
  lines(unitId: string): Promise<string[]>;
  /** Waits until it has printed this. */
  printed(unitId: string, text: string, withinMs?: number): Promise<void>;
  /** Closes the runtime and opens another one in the same place. */
  reopen(): Promise<void>;
  close(): Promise<void>;
}

export const withinMs = 20_000;

export async function openTrial(variant: Variant): Promise<Trial> {
  const root = mkdtempSync('/tmp/platform-runtime-');
  chmodSync(root, 0o711);
  const source = path.join(root, 'src');
  mkdirSync(source);
  writeFileSync(path.join(source, 'hello.txt'), 'hello\n');
  const errors: unknown[] = [];
  const options: LocalRuntimeOptions = {
    ...variant,
    directory: path.join(root, 'units'),
    ports: [24000, 24099],
    tenantUidBase: 700_000,
    measureServicesEveryMs: 1_000,
    log: (_message, error) => errors.push(error),
  };
  const runtime = await openLocalRuntime(options);
  const { disk_limit } = (await runtime.fingerprint(driverContext(withinMs))).facts;
  const trial: Trial = {
    runtime,
    disks: disk_limit === 'hard',
    options,
    root,
    errors,
    spec: (id, command, { limits, ...more } = {}) => ({
      id,
      kind: 'service',
      command,
      directory: source,
      root_directory: '.',
      mounts: [],
      env: {},
      tenant: 7,
      ...more,
      limits: {
        memory_mb: 256,
        cpus: 1,
        processes: 64,
        time_ms: null,
        output_bytes: 1 << 20,
        disk_mb: 64,
        ...limits,
      },
    }),
    start: (spec) => trial.runtime.start(spec, driverContext(withinMs)),
    run: async (spec) => trial.ended(await trial.start(spec)),
    ended: (handle, ms) => endOf(trial.runtime, handle, ms),
    lines: (unitId) => linesOf(trial.runtime, unitId),
    printed: async (unitId, text, ms = 30_000) =>
      until(async () => (await linesOf(trial.runtime, unitId)).some((line) => line.includes(text)), ms),
    reopen: async () => {
      await trial.runtime.close();
      trial.runtime = await openLocalRuntime(options);
    },
    close: async () => {
      for (const id of await trial.runtime.list())
        await retryCheck(() => trial.runtime.destroy(id, driverContext(withinMs)));
      await trial.runtime.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
  return trial;
}

export async function until(condition: () => boolean | Promise<boolean>, ms = 30_000): Promise<void> {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(20)) if (await condition()) return;
  throw new Error('waited in vain');
}

async function endOf(runtime: RuntimeDriver, handle: Handle, ms = 15_000): Promise<Exited> {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(20)) {
    const state = await runtime.inspect(handle);
    if (state.state === 'exited') return state;
    if (state.state === 'gone') throw new Error('the unit is gone');
  }
  throw new Error('the unit did not end');
}

/** All that a unit, or a server by its driver, has said so far. */
export async function linesOf(from: Pick<RuntimeDriver, 'readLog'>, id: string): Promise<string[]> {
  const all: string[] = [];
  for (let position: string | null = null, more = true; more;) {
    const chunk = await from.readLog(id, position);
    all.push(...chunk.lines.map(({ text }) => text));
    ({ position, more } = chunk);
  }
  return all;
}
