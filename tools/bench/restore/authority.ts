// A certificate authority on loopback that finds every name proven: pebble.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../demo/ports';

const ANSWERS_WITHIN_MS = 20_000;

export async function openAuthority(folder: string): Promise<{ settings: Record<string, string>; close(): void }> {
  const file = (name: string): string => path.join(folder, `pebble-${name}`);
  const curve = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const subject = ['-subj', '/CN=pebble', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const to = ['-keyout', file('key.pem'), '-out', file('cert.pem')];
  execFileSync('openssl', ['req', ...curve, ...subject, ...to], { stdio: 'ignore' });
  const [port, management] = [await freePort(), await freePort()];
  const pebble = {
    ...{ listenAddress: `127.0.0.1:${port}`, managementListenAddress: `127.0.0.1:${management}` },
    ...{ certificate: file('cert.pem'), privateKey: file('key.pem'), httpPort: 1, tlsPort: 1, ocspResponderURL: '' },
    ...{ externalAccountBindingRequired: false, certificateValidityPeriod: 90 * 24 * 3600 },
  };
  writeFileSync(file('config.json'), JSON.stringify({ pebble }));
  const env = { PATH: process.env.PATH, PEBBLE_VA_NOSLEEP: '1', PEBBLE_VA_ALWAYS_VALID: '1' };
  const child = spawn('pebble', ['-config', file('config.json')], { stdio: 'ignore', env });
  const directory = `https://127.0.0.1:${port}/dir`;
  for (const end = Date.now() + ANSWERS_WITHIN_MS; !(await answers(directory, file('cert.pem'))); await sleep(100))
    if (Date.now() > end) throw new Error('pebble does not answer');
  return {
    settings: { ACME_DIRECTORY: directory, ACME_EMAIL: 'ops@example.com', ACME_CA_FILE: file('cert.pem') },
    close: () => void child.kill('SIGKILL'),
  };
}

function answers(url: string, caFile: string): Promise<boolean> {
  return new Promise((resolve) => {
    get(url, { ca: readFileSync(caFile) }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on('error', () => resolve(false));
  });
}
