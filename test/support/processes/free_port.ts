import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Above those that Linux gives to who asks for any port: one of these would be taken by another server before the
 * program of the test listens. Each worker of a run has its own.
 */
const FIRST = 61_000;
const OF_A_WORKER = 560;
const first = FIRST + ((Number(process.env.JEST_WORKER_ID ?? 1) - 1) % 8) * OF_A_WORKER;
let given = Math.floor(Math.random() * OF_A_WORKER);

/** A port that nobody listens on now. @throws Error if all of this worker are taken */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < OF_A_WORKER; attempt += 1) {
    given = (given + 1) % OF_A_WORKER;
    const port = first + given;
    if (await isFree(port)) return port;
  }
  throw new Error(`no port of ${first} to ${first + OF_A_WORKER - 1} is free`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port), 'listening');
    return true;
  } catch {
    return false;
  } finally {
    if (server.listening) await once(server.close(), 'close');
  }
}
