// Readiness of a started server: it first loads its data, or recovers from a crash.
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError, checkpoint } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import type { EngineContext } from './server_directory';
import { lastLines, stateOf, unitOf } from './unit';

/** The server does not respond yet: it is starting, loading its data, or has exited. */
export class NotReady extends DriverError {
  constructor() {
    super('transient', 'The server does not answer yet.', 500);
  }
}

const pollEveryMs = 50;
// Slower servers are awaited by further steps.
const startWithinMs = 5_000;

/**
 * Waits until `probe` succeeds. @throws NotReady on timeout @throws DriverError transient when the server has exited
 */
export async function waitForAnswer(
  engine: EngineContext,
  id: string,
  probe: () => Promise<unknown>,
  ctx: DriverContext,
): Promise<void> {
  for (const end = Date.now() + startWithinMs; ; await sleep(pollEveryMs)) {
    checkpoint(ctx);
    const error = await probe().then(
      () => null,
      (reason: unknown) => reason,
    );
    if (error === null) return;
    if (!(error instanceof NotReady)) throw error;
    if ((await stateOf(engine, id)).state.state !== 'running') throw await endedEarly(engine, id);
    if (Date.now() > end) throw error;
  }
}

/** Retries until the context expires. */
export async function retryUntilReady(
  attempt: () => Promise<void>,
  again: () => Promise<void>,
  ctx: DriverContext,
): Promise<void> {
  for (let next = attempt; ; next = again) {
    checkpoint(ctx);
    const error = await next().then(
      () => null,
      (reason: unknown) => reason,
    );
    if (error === null) return;
    if (!(error instanceof NotReady)) throw error;
  }
}

async function endedEarly(engine: EngineContext, id: string): Promise<DriverError> {
  return Object.assign(new DriverError('transient', 'The server ended while it started.', 5_000), {
    cause: await lastLines(engine, unitOf(id)),
  });
}
