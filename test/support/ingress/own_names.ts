// The platform under names of its own: `npm start` with the ingress in a process of its own, and a certificate of an
// authority of the test.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openSocketChannel } from '../../../core/process/channel';
import { connectControl } from '../../../engines/ingress/process/control_socket';
import { createTestDatabase } from '../databases/database';
import { freePort } from '../processes/free_port';
import { endPrograms, startProgram, type Program } from '../processes/program';
import { whole, type Answer } from './ingress';
import { makeSignedCertificate } from './ingress_certificate';
import { withConfig } from '../config';

export const API = 'platform.example.com';
export const S3 = 's3.example.com';
export const REGISTRY = 'registry.example.com';

export interface Asked extends Omit<https.RequestOptions, 'host' | 'headers'> {
  host?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

export interface OwnNames {
  directory: string;
  /** File with the certificate of the authority. */
  caFile: string;
  ca: string;
  ports: { api: number; http: number; https: number; s3: number; registry: number; admin: number };
  first(): { key: string; project_id: string; base_url: string };
  program(): Program;
  /** Over TLS, by default to the name of the API. */
  ask(options?: Asked): Promise<Answer>;
  /** Like `ask`, but resolves when the answer begins. */
  open(options?: Asked): Promise<IncomingMessage>;
  /** Ends the control plane. The ingress serves on. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Resolves when it is ready. */
  start(settings?: Record<string, string>): Promise<void>;
  close(): Promise<void>;
}

/** @param settings beside those that give the platform its names */
export async function openOwnNames(settings: Record<string, string> = {}): Promise<OwnNames> {
  const database = await createTestDatabase();
  const directory = mkdtempSync(path.join(tmpdir(), 'own-names-'));
  const { chain, key, ca } = makeSignedCertificate(API, S3, `*.${S3}`, REGISTRY, 'app.example.com');
  const file = (name: string, text: string): string => {
    writeFileSync(path.join(directory, name), text, { mode: 0o600 });
    return path.join(directory, name);
  };
  const [api, http, tls] = [await freePort(), await freePort(), await freePort()];
  const ports = { api, http, https: tls, s3: await freePort(), registry: await freePort(), admin: await freePort() };
  const caFile = file('ca.pem', ca);
  const given = {
    DATABASE_URL: database.url,
    PLATFORM_DATA_DIR: path.join(directory, 'data'),
    ...{ PORT: `${api}`, INGRESS_PORT: `${http}`, INGRESS_TLS_PORT: `${tls}`, ADMIN_PORT: `${ports.admin}` },
    ...{ S3_PORT: `${ports.s3}`, REGISTRY_PORT: `${ports.registry}` },
    ...withConfig({ ingressProcess: 'separate' }),
    ...{ BASE_URL: `https://${API}:${tls}`, S3_URL: `https://${S3}:${tls}`, REGISTRY_HOST: `${REGISTRY}:${tls}` },
    ...{ S3_DOMAIN: S3, S3_WEBSITE_DOMAIN: 'web.example.com' },
    ...{ INGRESS_CERT_FILE: file('cert.pem', chain), INGRESS_KEY_FILE: file('key.pem', key) },
    ...settings,
  };
  let program = startProgram(given);
  const ingress = path.join(directory, 'data/runtime/ingress');
  await program.ready();
  return {
    directory,
    caFile,
    ca,
    ports,
    first: () => JSON.parse(readFileSync(path.join(directory, 'data/first-key.json'), 'utf8')),
    program: () => program,
    ask: async (options = {}) => whole(await open(tls, ca, options)),
    open: (options = {}) => open(tls, ca, options),
    async stop(signal = 'SIGTERM') {
      program.signal(signal);
      await program.ended;
    },
    async start(more = {}) {
      program = startProgram({ ...given, ...more });
      await program.ready();
    },
    async close() {
      await endPrograms();
      await endIngress(ingress);
      await database.drop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function open(port: number, ca: string, { host = API, body, ...options }: Asked): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { headers, ...more } = options;
    const request = https.request({
      ...{ host: '127.0.0.1', port, servername: host, ca, agent: false },
      ...{ headers: { host: `${host}:${port}`, ...headers }, ...more },
    });
    request.on('error', reject).on('response', resolve);
    request.end(body);
  });
}

/** Also of a control plane that was killed. */
async function endIngress(directory: string): Promise<void> {
  const socket = await connectControl(directory);
  if (!socket) return;
  const channel = openSocketChannel(socket, {});
  await channel.call('hello');
  channel.send('end', 0);
  await channel.closed;
}
