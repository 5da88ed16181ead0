// A real certificate authority on loopback: pebble, which Debian packages.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../processes/free_port';

export interface Pebble {
  /** Its directory, behind a certificate that only `caFile` vouches for. */
  directory: string;
  caFile: string;
  keyFile: string;
  /** The root of what it issues, PEM. Another one after each start. */
  root(): Promise<string>;
  start(): Promise<void>;
  /** Ends it: its accounts, orders and roots are lost. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

interface Options {
  /** Port on which it looks for the answers to its challenges. */
  httpPort: number;
  /** The server that it asks for names. */
  dns: string;
  validSeconds: number;
}

export async function openPebble({ httpPort, dns, validSeconds }: Options): Promise<Pebble> {
  const folder = mkdtempSync(path.join(tmpdir(), 'platform-api-pebble-'));
  const file = (name: string): string => path.join(folder, name);
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '1',
      '-subj',
      '/CN=pebble',
      '-addext',
      'subjectAltName=IP:127.0.0.1',
      '-keyout',
      file('key.pem'),
      '-out',
      file('cert.pem'),
    ],
    { stdio: 'ignore' },
  );
  const [port, management] = await Promise.all([freePort(), freePort()]);
  const pebble = {
    ...{
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: file('cert.pem'),
      privateKey: file('key.pem'),
    },
    ...{
      httpPort,
      tlsPort: 1,
      ocspResponderURL: '',
      externalAccountBindingRequired: false,
      certificateValidityPeriod: validSeconds,
      // Of newer ones, instead of the period above.
      profiles: { default: { description: 'default', validityPeriod: validSeconds } },
    },
  };
  writeFileSync(file('config.json'), JSON.stringify({ pebble }));
  const ca = readFileSync(file('cert.pem'), 'utf8');
  const directory = `https://127.0.0.1:${port}/dir`;
  let child: ChildProcess | null = null;
  const self: Pebble = {
    directory,
    caFile: file('cert.pem'),
    keyFile: file('key.pem'),
    root: () => read(`https://127.0.0.1:${management}/roots/0`, ca),
    async start() {
      child = spawn('pebble', ['-config', file('config.json'), '-dnsserver', dns], {
        stdio: 'ignore',
        // Its habit of refusing one nonce in twenty stays. Each order proves its name anew, so that all steps are gone.
        env: { PATH: process.env.PATH, PEBBLE_VA_NOSLEEP: '1', PEBBLE_AUTHZREUSE: '0' },
      });
      await answering(directory, ca);
    },
    async stop() {
      const running = child;
      child = null;
      if (!running || running.exitCode !== null) return;
      const ended = new Promise((resolve) => running.once('exit', resolve));
      running.kill('SIGKILL');
      await ended;
    },
    async close() {
      await self.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return self;
}

async function answering(url: string, ca: string): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) {
    if (await read(url, ca).catch(() => null)) return;
    await sleep(100);
  }
  throw new Error('pebble does not answer');
}

function read(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { ca }, (response) => {
      let text = '';
      response.on('data', (part: Buffer) => (text += part.toString()));
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });
}
