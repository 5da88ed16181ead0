// One connection that listens to NOTIFY and reconnects automatically.
import { Client } from 'pg';
import type { Logger } from '../../core/log/log';

interface Listener {
  close(): Promise<void>;
}

const RETRY_MS = 1_000;

/**
 * Calls `handlers[channel]` with the payload of each notification. A lost connection is made again every second.
 * @param listening called whenever a connection begins to listen: earlier notifications are lost
 */
export function listen(
  url: string,
  handlers: Record<string, (payload: string) => void>,
  log: Logger,
  listening?: () => void,
): Listener {
  let client: Client | null = null;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  const again = (): void => {
    client = null;
    if (!closed) timer = setTimeout(() => void connect(), RETRY_MS).unref();
  };
  const connect = async (): Promise<void> => {
    const fresh = newClient(url, handlers);
    let lost = false;
    fresh.on('error', () => {
      if (!lost) again();
      lost = true;
    });
    try {
      await fresh.connect();
      for (const channel of Object.keys(handlers)) await fresh.query(`listen ${channel}`);
      client = fresh;
      listening?.();
    } catch (error) {
      log.warn({ err: error }, 'listening to the database failed');
      await fresh.end().catch(() => {});
      if (!lost) again();
    }
  };
  const first = connect();
  const close = async (): Promise<void> => {
    closed = true;
    clearTimeout(timer);
    await first;
    await client?.end().catch(() => {});
  };
  return { close };
}

function newClient(url: string, handlers: Record<string, (payload: string) => void>): Client {
  const client = new Client({
    connectionString: url,
    application_name: 'platform-api listener',
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
  });
  client.on('notification', ({ channel, payload }) => handlers[channel]?.(payload ?? ''));
  return client;
}
