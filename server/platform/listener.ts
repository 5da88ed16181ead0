// One connection that listens to NOTIFY and reconnects automatically.
import type { Client } from 'pg';
import type { Logger } from '../../core/log/log';
import { repeatWork } from '../../core/process/background';
import { connectToLeader } from '../../db/servers';

interface Listener {
  close(): Promise<void>;
}

const RETRY_MS = 1_000;
/** Who only listens does not notice that the machine of the server has lost its power. */
const ASK_EVERY_MS = 5_000;
const SILENT_MS = 5_000;

/**
 * Calls `handlers[channel]` with the payload of each notification. A lost connection is made again every second, one
 * that is silent within ten.
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
    let fresh: Client | null = null;
    let lost = false;
    try {
      fresh = await connectToLeader(url, { application_name: 'platform-api listener', keepAlive: true });
      fresh.on('error', () => {
        if (!lost) again();
        lost = true;
      });
      fresh.on('notification', ({ channel, payload }) => handlers[channel]?.(payload ?? ''));
      for (const channel of Object.keys(handlers)) await fresh.query(`listen ${channel}`);
      client = fresh;
      listening?.();
    } catch (error) {
      log.warn({ err: error }, 'listening to the database failed');
      await fresh?.end().catch(() => {});
      if (!lost) again();
    }
  };
  const first = connect();
  const asking = repeatWork({ name: 'database_listeners', everyMs: ASK_EVERY_MS }, async () => {
    const asked = client;
    if (asked === null) return;
    const silent = setTimeout(() => asked.connection.stream.destroy(), SILENT_MS);
    await asked.query('select 1').finally(() => clearTimeout(silent));
  });
  const close = async (): Promise<void> => {
    closed = true;
    clearTimeout(timer);
    await asking.stop();
    await first;
    await client?.end().catch(() => {});
  };
  return { close };
}
