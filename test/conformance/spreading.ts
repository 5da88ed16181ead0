// The driver that spreads connections, for the suite: in a runtime of its own, each resource at a port of its own.
import path from 'node:path';
import type { Desired, ResourceDriver } from '../../core/driver';
import type { ObservedListener, SpreadSpec } from '../../drivers/endpoint';
import { openSpreader } from '../../drivers/endpoint/haproxy';
import { hostFacts } from '../../drivers/host';
import type { RuntimeDriver } from '../../drivers/runtime';
import { openLocalRuntime } from '../../drivers/runtime/local';

interface SpreadingOptions {
  directory: string;
  /** Each resource has one of these, by the number in its id. */
  firstPort: number;
  ports: number;
}

/** Opens its runtime with the first call; `closed` ends the watching of it. */
export function openSpreading(
  options: SpreadingOptions,
): ResourceDriver<SpreadSpec, ObservedListener> & { closed(): Promise<void>; runtime(): Promise<RuntimeDriver> } {
  let opened: Promise<RuntimeDriver> | undefined;
  const runtime = () =>
    (opened ??= openLocalRuntime({
      directory: path.join(options.directory, 'units'),
      ports: [24_000, 24_001],
      sandbox: 'auto',
      tenantUidBase: 700_000,
    }));
  const driver = async () =>
    openSpreader({
      runtime: await runtime(),
      directory: path.join(options.directory, 'endpoints'),
      found: async () => (await hostFacts()).programs.haproxy ?? null,
    });
  const placed = (r: Desired<SpreadSpec>): Desired<SpreadSpec> => ({
    ...r,
    spec: { ...r.spec, port: options.firstPort + (Number(/\d+$/.exec(r.id)?.[0] ?? 0) % options.ports) },
  });
  return {
    name: 'haproxy',
    runtime,
    closed: async () => (await runtime()).close(),
    fingerprint: async (ctx) => (await driver()).fingerprint(ctx),
    observe: async (r, ctx) => (await driver()).observe(placed(r), ctx),
    ensure: async (r, obs, ctx) => (await driver()).ensure(placed(r), obs, ctx),
    remove: async (r, obs, ctx) => (await driver()).remove(placed(r), obs, ctx),
    async *list(ctx) {
      yield* (await driver()).list(ctx);
    },
  };
}
