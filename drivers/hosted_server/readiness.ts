// A server that was started answers after a while: it reads its data first, or mends what a crash has left.
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError, checkpoint } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import type { EngineContext } from './server_directory';
import { lastLines, stateOf, unitOf } from './unit';

/** It does not answer yet: it starts, reads its data, or has ended. */
export class NotReady extends DriverError {
  constructor() {
    super('transient', 'The server does not answer yet.', 500);
  }
}

const pollEveryMs = 50;
// What takes longer is waited for by further steps.
const startWithinMs = 5_000;

/**
 * Waits until `ask` gets an answer. @throws NotReady after a while @throws DriverError transient when the server has
 * ended
 */
export async function waitForAnswer(
  engine: EngineContext,
  id: string,
  ask: () => Promise<unknown>,
  ctx: DriverContext,
): Promise<void> {
  for (const end = Date.now() + startWithinMs; ; await sleep(pollEveryMs)) {
    checkpoint(ctx);
    const error = await ask().then(
      () => null,
      (reason: unknown) => reason,
    );
    if (error === null) return;
    if (!(error instanceof NotReady)) throw error;
    if ((await stateOf(engine, id)).state.state !== 'running') throw await endedEarly(engine, id);
    if (Date.now() > end) throw error;
  }
}

/** Waits as long as the context lasts. */
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
