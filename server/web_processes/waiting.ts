// A process that answers at the port of the API until a web process does. They share the port: it is not closed between
// them, and no connection that waits there is lost.
import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Config } from '../../core/config';
import { StartupError } from '../../core/startup_error';
import { openWaitingPort } from '../http/waiting_port';

/** For answers that are under way. */
const LEAVE_MS = 1_000;

export interface WaitingProcess {
  /** A web process answers from now on. */
  leave(): void;
}

/** @throws StartupError for a taken port or an address that is not this machine's */
export async function startWaitingProcess({ host, port }: Pick<Config, 'host' | 'port'>): Promise<WaitingProcess> {
  cluster.setupPrimary({ exec: __filename, args: [host, String(port)] });
  cluster.schedulingPolicy = cluster.SCHED_RR;
  const worker = cluster.fork();
  const failed = once(worker, 'message').then(([reason]) => Promise.reject(new StartupError(String(reason))));
  const ended = once(worker, 'exit').then(() => Promise.reject(new StartupError('the process of the port ended')));
  await Promise.race([once(worker, 'listening'), failed, ended]);
  failed.catch(() => undefined);
  ended.catch(() => undefined);
  return {
    leave() {
      worker.disconnect();
      setTimeout(() => worker.process.kill('SIGKILL'), LEAVE_MS).unref();
    },
  };
}

if (cluster.isWorker && require.main === module) {
  const [host, port] = process.argv.slice(2) as [string, string];
  openWaitingPort({ host, port: Number(port) }).catch((error: Error) => void process.send?.(error.message));
}
