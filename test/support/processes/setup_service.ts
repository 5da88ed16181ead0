// A service with a file of settings, which a test restarts as a service manager does.
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FirstKey } from '../../../server/first_boot';
import type { ServiceControl } from '../../../server/setup/service_unit';
import { withSettings } from '../../../server/setup/settings_text';
import { fastDirectory } from '../databases/database';
import { freePort } from './free_port';

const ROOT = path.resolve(__dirname, '../../..');
const HOOK = path.join(ROOT, 'test/support/runner/typescript.js');
const START_MS = 60_000;

export interface SetupService extends ServiceControl {
  directory: string;
  envFile: string;
  /** Address of the API by the settings of the start, which stays open. */
  url: string;
  first(): FirstKey;
  /** Runs code of a module with the settings of the file, as the operator's command does. */
  settings(): NodeJS.ProcessEnv;
  restarts: number;
  close(): Promise<void>;
}

export async function startSetupService(more: Record<string, string> = {}): Promise<SetupService> {
  const directory = mkdtempSync(path.join(fastDirectory(), 'platform-setup-'));
  chmodSync(directory, 0o755); // the database's user must get through
  const [envFile, dataDir] = [path.join(directory, 'platform.env'), path.join(directory, 'data')];
  const port = await freePort();
  const settings = {
    ...{ PLATFORM_DATA_DIR: dataDir, PORT: String(port), ADMIN_PORT: '0', DNS_PORT: '0', SMTP_PORTS: '0' },
    ...{ NETWORK: 'shared', VOLUME_DRIVER: 'directory', SHUTDOWN_GRACE_SECONDS: '2', S3_PORT: '0', REGISTRY_PORT: '0' },
    ...more,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  const own = `# Of the owner\n${lines.join('')}`;
  // Two installations on a machine would share the usual port.
  writeFileSync(envFile, withSettings(own, { INGRESS_PORT: String(await freePort()) }), { mode: 0o600 });
  const { PATH, HOME } = process.env;
  let child: ChildProcess | null = null;
  const stop = async (): Promise<void> => {
    const running = child;
    child = null;
    if (!running || running.exitCode !== null) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill('SIGTERM');
    await ended;
  };
  const service: SetupService = {
    ...{ directory, envFile, url: `http://127.0.0.1:${port}`, restarts: 0 },
    first: () => JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8')),
    settings: () => ({ PATH, HOME, ...settings }),
    async restart() {
      await stop();
      service.restarts += 1;
      child = spawn(process.execPath, [`--env-file=${envFile}`, '--require', HOOK, path.join(ROOT, 'server/main.ts')], {
        cwd: directory,
        env: { PATH, HOME },
        stdio: 'ignore',
      });
    },
    async close() {
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  await service.restart();
  for (const end = Date.now() + START_MS; ; await sleep(100)) {
    const answer = await fetch(`${service.url}/readyz`).catch(() => null);
    if (answer?.ok && existsSync(path.join(dataDir, 'first-key.json'))) return service;
    if (Date.now() > end) throw new Error('the service does not start');
  }
}
