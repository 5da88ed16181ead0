// Debian's docker-registry on loopback, which trusts the tokens of a service and tells it what happens.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '../processes/free_port';
import { waitFor } from '../wait_for';

const PROGRAM = '/usr/bin/docker-registry';
const UP_WITHIN_MS = 30_000;

export interface Distribution {
  url: string;
  host: string;
  /** Of its notifications. */
  eventsKey: string;
  /**
   * @param platform where it gets tokens and sends notifications, and the file with which it verifies tokens; null:
   * everybody may do everything
   * @param storage as its configuration has it; a directory of its own where it is left out
   */
  start(platform: Trusted | null, storage?: object): Promise<void>;
  /** SIGKILL, and waits for the end. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

/** `path` of the address of the API; absent on REGISTRY_PORT. */
interface Trusted {
  port: number;
  path?: string;
  certificate: string;
}

/** @param address of this machine, for clients on others */
export async function openDistribution(address = '127.0.0.1'): Promise<Distribution> {
  const root = mkdtempSync(path.join(tmpdir(), 'distribution-'));
  const port = await freePort();
  const host = `${address}:${port}`;
  let child: ChildProcess | null = null;
  const self: Distribution = {
    ...{ url: `http://${host}`, host, eventsKey: 'a-key-of-tests' },
    async start(platform, storage = { filesystem: { rootdirectory: path.join(root, 'data') } }) {
      const file = path.join(root, 'config.yml');
      writeFileSync(file, configuration(storage, { address, port }, platform, self.eventsKey));
      child = spawn(PROGRAM, ['serve', file], { stdio: 'ignore', env: { OTEL_TRACES_EXPORTER: 'none' } });
      await waitFor('docker-registry', () => answers(`${self.url}/v2/`), UP_WITHIN_MS);
    },
    async kill() {
      const ended = child && child.exitCode === null && new Promise((resolve) => child?.once('exit', resolve));
      child?.kill('SIGKILL');
      await ended;
      child = null;
    },
    async close() {
      await self.kill();
      rmSync(root, { recursive: true, force: true });
    },
  };
  return self;
}

function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    () => true,
    () => false,
  );
}

function configuration(
  storage: object,
  { address, port }: { address: string; port: number },
  platform: Trusted | null,
  key: string,
): string {
  const common = [
    'version: 0.1',
    'log: {level: error, accesslog: {disabled: true}}',
    `storage: ${JSON.stringify({ ...storage, delete: { enabled: true } })}`,
    // Tests are clients of loopback, whatever the address for others is.
    `http: {addr: "${address === '127.0.0.1' ? address : '0.0.0.0'}:${port}", secret: a-secret-of-tests}`,
  ];
  if (!platform) return `${common.join('\n')}\n`;
  const base = `http://${address}:${platform.port}${platform.path ?? ''}`;
  return [
    ...common,
    'auth:',
    '  token:',
    `    realm: ${base}/token`,
    `    service: "${address}:${port}"`,
    '    issuer: platform-api',
    `    rootcertbundle: ${platform.certificate}`,
    'notifications:',
    '  endpoints:',
    '    - name: platform',
    `      url: ${base}/events`,
    `      headers: {Authorization: ["Bearer ${key}"]}`,
    '      timeout: 5s',
    '      threshold: 3',
    '      backoff: 1s',
    '',
  ].join('\n');
}
