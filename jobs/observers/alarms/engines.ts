// Whether the servers of this host answer.
import { connect } from 'node:net';
import type { Reading } from '../../../models/observers/installation_alarm/alarm_rules';

/** A server, and how to find out whether it answers. `probe` rejects with the reason where it does not. */
export interface Engine {
  name: string;
  /** What does not work without it. */
  serves: string;
  probe(signal: AbortSignal): Promise<unknown>;
}

const WITHIN_MS = 5_000;

/** One reading of each server that does not answer. */
export async function engineReadings(engines: readonly Engine[]): Promise<Reading[]> {
  const found = await Promise.all(
    engines.map(async ({ name, serves, probe }): Promise<Reading[]> => {
      const reason = await failureOf(probe);
      if (reason === null) return [];
      const title = `The ${name} does not answer`;
      return [{ name: 'engine', subject: name, title, detail: `${serves} ${reason} See the log of the service.` }];
    }),
  );
  return found.flat();
}

async function failureOf(probe: Engine['probe']): Promise<string | null> {
  const late = AbortSignal.timeout(WITHIN_MS);
  const timeout = new Promise<never>((_, reject) =>
    late.addEventListener('abort', () => reject(new Error(`no answer within ${WITHIN_MS / 1000} seconds`))),
  );
  try {
    await Promise.race([probe(late), timeout]);
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return `The reason: ${code ?? message}.`;
  }
}

/** Whether something accepts connections there. */
export function probePort(host: string, port: number): Engine['probe'] {
  return (signal) =>
    new Promise<void>((resolve, reject) => {
      const socket = connect({ host, port });
      signal.addEventListener('abort', () => socket.destroy(), { once: true });
      socket.once('error', reject).once('connect', () => {
        socket.destroy();
        resolve();
      });
    });
}
