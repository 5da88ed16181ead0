// Writes the new settings, restarts the service, waits until it serves the new name, and puts the settings of before
// back where it does not.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../core/config';
import { apiProblem, httpsProblem, isUntrusted } from './https_ready';
import type { ServiceControl } from './service_unit';
import type { SettingsFile } from './settings_file';
import { SetupError } from './setup_error';

export interface SwitchOver {
  settings: SettingsFile;
  service: ServiceControl;
  /** With the settings of before, and with the new ones. */
  before: Config;
  now: Config;
  /** The new text of the file; null where it is written already, by a call that was killed. */
  text: string | null;
  platformHost: string;
  /** PEM, additional trusted roots. */
  roots: string | null;
  report(line: string): void;
  /** Why the authority refuses; null where nothing is known. */
  certificateError(): Promise<string | null>;
  /** Gives what the installation has names below the domains of these settings. @returns how many it moved */
  move(config: Config): Promise<number>;
  /** When the new names serve. @returns sentences on what the operator has to do */
  follow(before: Config, now: Config): Promise<string[]>;
  /** Aborted: go back. */
  signal: AbortSignal;
  /** Default: three minutes. */
  httpsWithinMs?: number;
}

const READY_WITHIN_MS = 120_000;
const HTTPS_WITHIN_MS = 180_000;
/** The order has failed twice by then, if the authority refuses. */
const REFUSED_AFTER_MS = 80_000;
/** A certificate of the operator may be served until the one that was ordered is there. */
const UNTRUSTED_MS = 20_000;
const POLL_MS = 1_000;

/** @throws SetupError; the settings of before are in force again then */
export async function switchOver(parts: SwitchOver): Promise<void> {
  const { settings, service, text, report, before, now } = parts;
  if (text !== null) await settings.write(text);
  try {
    // Before the restart, which orders certificates of the names that it finds.
    const moved = await parts.move(now);
    if (moved) report(`${moved} applications, previews and CDN zones have names below ${now.appsDomain} now.`);
    report('The settings are written. Restarting the service; applications serve on.');
    await service.restart();
    await waitUntil(() => apiProblem(now), READY_WITHIN_MS, parts.signal, 'The service did not become ready');
    report(`Waiting for the certificate of ${parts.platformHost}.`);
    await waitForHttps(parts);
    (await parts.follow(before, now)).forEach((line) => report(line));
  } catch (error) {
    // Nothing to go back to: the settings were in force before this call.
    if (!settings.isOnTrial()) throw error;
    await goBack(parts);
    throw new SetupError(`${sentence((error as Error).message)} The settings of before are in force again.`);
  }
  await settings.keep();
}

async function waitForHttps(parts: SwitchOver): Promise<void> {
  const { now, platformHost, roots, signal, httpsWithinMs = HTTPS_WITHIN_MS } = parts;
  const wait = (withinMs: number): Promise<void> =>
    waitUntil(() => httpsProblem(now, platformHost, roots), withinMs, signal, 'HTTPS did not become ready');
  try {
    await wait(Math.min(REFUSED_AFTER_MS, httpsWithinMs));
  } catch (error) {
    if (signal.aborted || isUntrusted((error as Error).message)) throw error;
    const refusal = await parts.certificateError().catch(() => null);
    if (refusal !== null) throw new SetupError(refusal);
    await wait(httpsWithinMs);
  }
}

/** @throws SetupError with the last problem */
async function waitUntil(
  problem: () => Promise<string | null>,
  withinMs: number,
  signal: AbortSignal,
  what: string,
): Promise<void> {
  const end = performance.now() + withinMs;
  let untrustedSince = Infinity;
  for (;;) {
    const found = await problem();
    if (found === null) return;
    untrustedSince = isUntrusted(found) ? Math.min(untrustedSince, performance.now()) : Infinity;
    if (performance.now() - untrustedSince > UNTRUSTED_MS) throw new SetupError(sentence(capital(found)));
    if (signal.aborted) throw new SetupError('Interrupted.');
    if (performance.now() > end) throw new SetupError(`${what} within ${withinMs / 1000} seconds: ${found}.`);
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function goBack({ settings, service, before, report, move }: SwitchOver): Promise<void> {
  report('Going back to the settings of before.');
  await settings.restore();
  // Without a database there is nothing to move either; the restart says why.
  await move(before).catch(() => 0);
  await service.restart();
  await waitUntil(
    () => apiProblem(before),
    READY_WITHIN_MS,
    new AbortController().signal,
    'The settings of before are back, but the service did not become ready',
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
