// Workers and probes as processes of their own, to be stopped and killed.
import { spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import type { TestService } from '../service';

function start(entry: string, settings: Record<string, string>): ChildProcess {
  const args = [
    '--require',
    path.join(__dirname, '../runner/typescript.js'),
    '--require',
    path.join(__dirname, '../processes/config.js'),
    path.join(__dirname, '../../../server', entry),
  ];
  return spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, LOG_LEVEL: 'error', ...settings },
    stdio: 'ignore',
  });
}

/** `npm run worker` on the database of a service. */
export function startObserverWorker(
  { platform, dataDir }: TestService,
  settings: Record<string, string>,
): ChildProcess {
  return start('worker.ts', {
    ...{ DATABASE_URL: platform.config.databaseUrl as string, PLATFORM_DATA_DIR: dataDir },
    ...{ INGRESS_PORT: '0', DNS_PORT: '0', SMTP_PORTS: '0', MX_PORT: '0', REGISTRY_PORT: '0', S3_PORT: '0' },
    ...{ VOLUME_DRIVER: 'directory', ...settings },
  });
}

/** `npm run probe` for a service. It has no database. */
export function startProbeProcess({ url }: TestService, key: string, settings: Record<string, string>): ChildProcess {
  return start('probe.ts', { PROBE_URL: url, PROBE_KEY: key, ...settings });
}
