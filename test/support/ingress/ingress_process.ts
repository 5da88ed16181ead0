// The ingress in a process of its own, as a control plane opens it.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connectControl } from '../../../engines/ingress/process/control_socket';
import type { ServedService } from '../../../engines/ingress/platform_services';
import { openSocketChannel } from '../../../core/process/channel';
import {
  openRemoteIngress,
  type RemoteIngress,
  type RemoteIngressOptions,
} from '../../../engines/ingress/process/remote';

const ROOT = path.resolve(__dirname, '../../..');
const program = {
  execPath: process.execPath,
  execArgv: ['--require', path.join(ROOT, 'test/support/runner/typescript.js')],
  script: path.join(ROOT, 'engines/ingress/process/main.ts'),
  cwd: ROOT,
};

export interface IngressProcessBench {
  directory: string;
  /** Like a control plane that starts, and finds what runs. */
  open(over?: Over): Promise<RemoteIngress>;
  /** Like the end of its control plane: the process serves on. */
  detach(remote: RemoteIngress): Promise<void>;
  pid(): Promise<number>;
  close(): Promise<void>;
}

interface Over {
  trustProxy?: number;
  tlsPort?: number | null;
  objectBytesMax?: number;
  services?: ServedService[];
  callbacks?: Partial<RemoteIngressOptions['callbacks']>;
  stored?: RemoteIngressOptions['stored'];
  log?(message: string): void;
}

const NO_CALLBACKS: RemoteIngressOptions['callbacks'] = {
  certificate: () => Promise.resolve(null),
  challenge: () => Promise.resolve(null),
  line: () => undefined,
};

export function startIngressProcessBench(): IngressProcessBench {
  // Longer than the path of a Unix socket may be.
  const directory = path.join(mkdtempSync(path.join(tmpdir(), 'ingress-process-')), 'a-long-name-'.repeat(8));
  const opened = new Set<RemoteIngress>();
  return {
    directory,
    async open({ trustProxy = 0, tlsPort = null, objectBytesMax = 1e6, services, callbacks, stored, log } = {}) {
      const limits = { bytesMax: 100e6, objectsMax: 1_000, memoryBytesMax: 1_000_000, objectBytesMax };
      const rules = { allowPrivateAddresses: true, resolvers: [], caFile: null, token: 'token-of-tests' };
      const remote = await openRemoteIngress({
        ...{ directory, program, callbacks: { ...NO_CALLBACKS, ...callbacks } },
        settings: {
          ...{ host: '127.0.0.1', port: 0, tlsPort, trustProxy, ...(services && { services }) },
          cdn: { directory: path.join(directory, 'cdn'), ...limits, ...rules },
        },
        log: (message) => log?.(message),
        ...(stored && { stored }),
      });
      opened.add(remote);
      return remote;
    },
    async detach(remote) {
      opened.delete(remote);
      await remote.ingress.close(0);
    },
    pid: () => pidOf(directory),
    async close() {
      for (const remote of opened) await remote.end(0).catch(() => undefined);
      rmSync(path.dirname(directory), { recursive: true, force: true });
    },
  };
}

async function pidOf(directory: string): Promise<number> {
  const socket = await connectControl(directory);
  if (!socket) throw new Error('no process listens');
  const channel = openSocketChannel(socket, {});
  const { pid } = (await channel.call('hello')) as { pid: number };
  channel.close();
  return pid;
}

export function isProcessAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !/\bZ\b/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}
