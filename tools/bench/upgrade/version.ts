// A version of the service, on the data directory of the version before.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { apiClient, type Api } from '../../demo/api';
import { freePort } from '../../demo/ports';

export interface Site {
  directory: string;
  /** Of the platform itself, where the ingress serves it. */
  name: string;
  certificate: string;
  key: string;
  ports?: Ports;
}

export interface Ports {
  api: number;
  http: number;
  tls: number;
}

export interface Version {
  ports: Ports;
  /** The name of the platform. */
  name: string;
  headers: Record<string, string>;
  api: Api;
  /** Host name of an application that answers. */
  deploy(): Promise<string>;
  /** As systemd does. */
  stop(): Promise<void>;
  /** With its applications and the ingress, which outlive it. */
  remove(): Promise<void>;
}

const READY_WITHIN_MS = 60_000;

/** @param folder has dist/ */
export async function startVersion(folder: string, site: Site): Promise<Version> {
  site.ports ??= { api: await freePort(), http: await freePort(), tls: await freePort() };
  const { ports, directory } = site;
  const off = ['S3_PORT', 'REGISTRY_PORT', 'DNS_PORT', 'SMTP_PORTS', 'MX_PORT', 'ADMIN_PORT'];
  const env = {
    ...{ PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: 'production', PLATFORM_DATA_DIR: directory },
    ...{ PORT: String(ports.api), INGRESS_PORT: String(ports.http), INGRESS_TLS_PORT: String(ports.tls) },
    ...{ INGRESS_CERT_FILE: site.certificate, INGRESS_KEY_FILE: site.key, VOLUME_DRIVER: 'directory' },
    ...{ BASE_URL: `https://${site.name}:${ports.tls}`, PREFERRED_NODE: 'host', PREFERRED_PYTHON: 'host' },
    ...{ APPS_DOMAIN: 'apps.example.com', RATE_LIMIT_READ: '1000000', RATE_LIMIT_WRITE: '1000000' },
    QUOTAS: '{"notifiers": null}',
    ...Object.fromEntries(off.map((name) => [name, '0'])),
  };
  const log = path.join(directory, 'service.log');
  const begin = existsSync(log) ? statSync(log).size : 0;
  const child = spawn(process.execPath, [path.resolve(folder, 'dist/server/main.js')], {
    env,
    detached: true,
    stdio: ['ignore', openSync(log, 'a'), 'inherit'],
  });
  const ended = once(child, 'exit');
  for (const end = Date.now() + READY_WITHIN_MS; !/"msg":"ready"/.test(readFileSync(log, 'utf8').slice(begin)); ) {
    if (child.exitCode !== null || Date.now() > end) throw new Error(`${folder} does not start: see ${log}`);
    await sleep(50);
  }
  const first = JSON.parse(readFileSync(path.join(directory, 'first-key.json'), 'utf8')) as {
    key: string;
    project_id: string;
  };
  const api = apiClient(`http://127.0.0.1:${ports.api}`, first.key, first.project_id);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  return {
    ports,
    api,
    name: site.name,
    headers: { Authorization: `Bearer ${first.key}`, 'X-Svc-Project': first.project_id },
    async deploy() {
      const made = await api.call('POST', '/v2/applications', { name: 'shop', preset: 'node-web' });
      const { id } = await api.call('POST', `/v2/applications/${made.id}/deployments`, {});
      await api.until(`/v2/applications/${made.id}/deployments/${id}`, ({ status }) => status === 'active');
      return String(made.default_hostname);
    },
    stop,
    async remove() {
      const { data } = await api.call<{ data: { id: string }[] }>('GET', '/v2/applications');
      for (const { id } of data) await api.call('DELETE', `/v2/applications/${id}`);
      for (let turn = 0; turn < 100; turn += 1) {
        const left = await api.call<{ data: object[] }>('GET', '/v2/applications');
        if (left.data.length === 0) break;
        await sleep(100);
      }
      await stop();
    },
  };
}
