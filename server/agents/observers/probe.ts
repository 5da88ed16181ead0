// A probe: checks the targets of observers from a remote location, without a database.
import type { Config } from '../../../core/config';
import { CHECK_KINDS } from '../../../core/outbound/probe_protocol';
import type { Logger } from '../../../core/log/log';
import { run } from '../../../core/process/command';
import { driverContext } from '../../../core/driver';
import { openMonitor } from '../../../drivers/monitor/open';
import { openWakeSignal } from '../../../jobs/wake_signal';
import { outboundOf } from '../../platform/outbound';
import { CHECKS_AT_ONCE, startCheckLoop } from '../../../jobs/observers/check_loop';
import { openNetworkGuard, referencesOf } from '../../../jobs/observers/network_guard';
import { openProbeStore, type ProbeRefused } from './probe_store';

export interface Probe {
  region: string;
  /** Resolves when the platform refuses its key. */
  failed: Promise<Error>;
  /** Reports what has been found, and ends. */
  close(): Promise<void>;
}

const POLL_MS = 1_000;
const PING_MS = 5_000;

/** Begins to check. @throws Error where the platform can't be reached, ProbeRefused */
export async function startProbe(
  config: Config,
  { url, key }: { url: string; key: string },
  log: Logger,
): Promise<Probe> {
  let refuse: (error: ProbeRefused) => void = () => undefined;
  const failed = new Promise<Error>((resolve) => (refuse = resolve));
  const canPing = await hasPing();
  const kinds = CHECK_KINDS.filter((kind) => kind !== 'ping' || canPing);
  const store = openProbeStore({ url, key, kinds, log, refused: (error) => refuse(error) });
  const region = await store.hello();
  const loop = startCheckLoop({
    ...{ store, log, pollMs: POLL_MS, wakeSignal: openWakeSignal() },
    monitor: openMonitor(outboundOf(config)),
    guard: openNetworkGuard({ references: referencesOf(config.checkReferences) }),
    concurrency: CHECKS_AT_ONCE,
  });
  return { region, failed, close: () => loop.stop() };
}

async function hasPing(): Promise<boolean> {
  const version = run('ping', ['-V'], driverContext(PING_MS));
  return version.then(
    () => true,
    () => false,
  );
}
